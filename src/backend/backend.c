#include "backend/backend.h"

#include <stdlib.h>
#include <time.h>

#include "backend/copy.h"
#include "backend/fence.h"

enum {
    ACCESSORS = 64,
    ACCESS_RETRIES = 50,
    ACCESS_PAUSE_NS = 200 * 1000,
    HOST_NODES = 64,
    REST_NS = 20 * 1000 * 1000
};

struct spw_backend {
    struct spw_fences fences; /* first: fences and memory share driver and ordinal */
    struct spw_copier copiers[SPW_TIER_COUNT]; /* by where they copy to */
    uint64_t patience_ns;
    CUdevice device;
    uint64_t granule_bytes;
    int host_node;                    /* for chunks on the host */
    bool unmap_ranges, access_ranges; /* one call covers neighbouring mappings */
    CUmemAccessDesc access[ACCESSORS];
    size_t access_count;
};

#define CALL(vm, fn, ...)                                                                          \
    SPW_DRIVER_CALL((vm)->fences.driver, (vm)->fences.ordinal, fn, __VA_ARGS__)

static enum spw_err to_err(CUresult result)
{
    return spw_err_from_driver((int)result);
}

static CUmemAllocationProp properties(const struct spw_backend *vm, enum spw_tier tier)
{
    bool host = tier == SPW_TIER_HOST;

    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE,
                     .id = host ? vm->host_node : vm->device},
    };
}

/* ---- memory ---- */

static enum spw_err vm_reserve(void *cookie, uint64_t bytes, uint64_t *ret_address)
{
    struct spw_backend *vm = cookie;
    CUdeviceptr address = 0;
    CUresult result = CALL(vm, cuMemAddressReserve, &address, bytes, vm->granule_bytes, 0, 0);

    if (result == CUDA_SUCCESS) {
        *ret_address = address;
    }
    return to_err(result);
}

static void vm_unreserve(void *cookie, uint64_t address, uint64_t bytes)
{
    (void)CALL((struct spw_backend *)cookie, cuMemAddressFree, address, bytes);
}

static enum spw_err vm_create(void *cookie, enum spw_tier tier, uint64_t bytes, uint64_t *ret_chunk)
{
    struct spw_backend *vm = cookie;
    CUmemAllocationProp prop = properties(vm, tier);
    CUmemGenericAllocationHandle handle = 0;
    CUresult result = CALL(vm, cuMemCreate, &handle, bytes, &prop, 0);

    if (result == CUDA_SUCCESS) {
        *ret_chunk = handle;
    }
    return to_err(result);
}

static enum spw_err vm_release(void *cookie, uint64_t chunk)
{
    return to_err(CALL((struct spw_backend *)cookie, cuMemRelease, chunk));
}

static enum spw_err vm_map(void *cookie, uint64_t address, uint64_t bytes, uint64_t chunk)
{
    return to_err(CALL((struct spw_backend *)cookie, cuMemMap, address, bytes, 0, chunk, 0));
}

/* The driver answers NOT_READY now and then while the device is busy (seen by others under load):
 * asked again a little later it succeeds. */
static CUresult set_access(struct spw_backend *vm, uint64_t address, uint64_t bytes)
{
    const struct timespec pause = {.tv_nsec = ACCESS_PAUSE_NS};
    CUresult result = CALL(vm, cuMemSetAccess, address, bytes, vm->access, vm->access_count);

    for (int i = 0; i < ACCESS_RETRIES && result == CUDA_ERROR_NOT_READY; i++) {
        nanosleep(&pause, NULL);
        result = CALL(vm, cuMemSetAccess, address, bytes, vm->access, vm->access_count);
    }
    return result;
}

static enum spw_err vm_set_access(void *cookie, uint64_t address, uint64_t bytes)
{
    struct spw_backend *vm = cookie;
    uint64_t step = vm->access_ranges ? bytes : vm->granule_bytes;
    CUresult result = CUDA_SUCCESS;

    for (uint64_t done = 0; done < bytes && result == CUDA_SUCCESS; done += step) {
        result = set_access(vm, address + done, step);
    }
    return to_err(result);
}

static enum spw_err vm_unmap(void *cookie, uint64_t address, uint64_t bytes, uint64_t chunk_bytes,
                             uint64_t *ret_done)
{
    struct spw_backend *vm = cookie;
    uint64_t step = vm->unmap_ranges ? bytes : chunk_bytes;

    for (uint64_t done = 0; done < bytes; done += step) {
        CUresult result = CALL(vm, cuMemUnmap, address + done, step);

        if (result != CUDA_SUCCESS) {
            *ret_done = done;
            return to_err(result);
        }
    }
    return SPW_OK;
}

/* ---- fences ---- */

static enum spw_err vm_fence(void *cookie, const struct spw_stream *stream, void **ret_fence)
{
    struct spw_fence *fence;
    enum spw_err err = spw_backend_fence_record(cookie, stream, &fence);

    if (err == SPW_OK) {
        *ret_fence = fence;
    }
    return err;
}

static enum spw_err vm_query(void *cookie, void *fence)
{
    return spw_backend_fence_query(cookie, fence);
}

static enum spw_err vm_wait_host(void *cookie, void *fence)
{
    return spw_backend_fence_wait(cookie, fence);
}

static enum spw_err vm_wait_soon(void *cookie, void *fence)
{
    struct spw_backend *vm = cookie;

    /* The driver's wait for all of a context has no end but its own. The pool asks for it last. */
    if (spw_backend_fence_is_deferred(&vm->fences, fence)) {
        return spw_backend_fence_wait(&vm->fences, fence);
    }
    return spw_backend_fence_wait_soon(&vm->fences, fence, vm->patience_ns);
}

static bool vm_defers(void *cookie)
{
    return spw_backend_fences_defer(cookie);
}

static enum spw_err vm_wait_stream(void *cookie, const struct spw_stream *stream, void *fence)
{
    return spw_backend_fence_wait_stream(cookie, stream, fence);
}

static void vm_drop(void *cookie, void *fence)
{
    spw_backend_fence_drop(cookie, fence);
}

/* ---- the host ---- */

/* Lets the device write to the first granule of a chunk of two and copy it to the second. */
static enum spw_err try_chunk(struct spw_backend *vm, uint64_t address, uint64_t chunk,
                              bool *ret_busy)
{
    uint64_t g = vm->granule_bytes;
    enum spw_err err = vm_map(vm, address, 2 * g, chunk);

    if (err != SPW_OK) {
        return err;
    }
    err = to_err(set_access(vm, address, 2 * g));
    if (err == SPW_OK) {
        err =
            spw_backend_copier_try(&vm->copiers[SPW_TIER_HOST], address + g, address, g, ret_busy);
    }
    if (!*ret_busy) {
        (void)CALL(vm, cuMemUnmap, address, 2 * g);
    }
    return err;
}

/* Tries the whole path on one node. No memory of the device is needed, for it may be full. */
static enum spw_err try_node(struct spw_backend *vm, int node, uint64_t address, bool *ret_busy)
{
    CUmemAllocationProp prop;
    size_t granule = 0;
    uint64_t chunk;
    enum spw_err err;

    vm->host_node = node;
    prop = properties(vm, SPW_TIER_HOST);
    err = to_err(
        CALL(vm, cuMemGetAllocationGranularity, &granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    if (err != SPW_OK || granule == 0 || vm->granule_bytes % granule != 0) {
        return SPW_E_UNSUPPORTED;
    }
    err = vm_create(vm, SPW_TIER_HOST, 2 * vm->granule_bytes, &chunk);
    if (err != SPW_OK) {
        return err;
    }
    err = try_chunk(vm, address, chunk, ret_busy);
    (void)vm_release(vm, chunk); /* it goes with its mapping */
    return err;
}

/* Finds out by doing it whether the driver records the events of a fence of the device. */
static bool has_device_fences(struct spw_backend *vm)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    struct spw_fence *fence;

    if (spw_backend_fence_record(&vm->fences, &all, &fence) == SPW_OK) {
        spw_backend_fence_drop(&vm->fences, fence);
    }
    return !spw_backend_fences_defer(&vm->fences);
}

static enum spw_err vm_probe_host(void *cookie, bool *ret_moves)
{
    struct spw_backend *vm = cookie;
    int own = vm->host_node;
    bool busy = false;
    uint64_t address;
    enum spw_err err;

    if (atomic_load(&vm->fences.driver->captures_open) > 0) {
        return SPW_E_AGAIN;
    }
    err = vm_reserve(vm, 2 * vm->granule_bytes, &address);
    if (err != SPW_OK) {
        return err;
    }
    err = try_node(vm, own, address, &busy); /* the device's own first */
    for (int node = 0; node < HOST_NODES && err != SPW_OK && !busy; node++) {
        if (node != own) {
            err = try_node(vm, node, address, &busy);
        }
    }
    if (!busy) {
        vm_unreserve(vm, address, 2 * vm->granule_bytes);
    }
    /* A fence of the whole device must be had that completes by itself. */
    *ret_moves = err == SPW_OK && has_device_fences(vm);
    return err;
}

/* The memory belongs to a context, any of the device's, but is for all. */
static CUresult enter_any(struct spw_backend *vm, bool *ret_pushed)
{
    return spw_backend_fences_enter(
        &vm->fences, vm->fences.own_count > 0 ? vm->fences.contexts[0] : NULL, ret_pushed);
}

static enum spw_err vm_pin(void *cookie, uint64_t bytes, uint64_t *ret_address,
                           uint64_t *ret_memory)
{
    struct spw_backend *vm = cookie;
    CUdeviceptr address = 0;
    void *memory = NULL;
    bool pushed;
    CUresult result = enter_any(vm, &pushed);

    if (result != CUDA_SUCCESS) {
        return to_err(result);
    }
    result = CALL(vm, cuMemHostAlloc, &memory, (size_t)bytes,
                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS) {
        result = vm->fences.driver->cuMemHostGetDevicePointer_v2 == NULL
                     ? CUDA_ERROR_NOT_SUPPORTED
                     : CALL(vm, cuMemHostGetDevicePointer_v2, &address, memory, 0);
        if (result != CUDA_SUCCESS) {
            (void)CALL(vm, cuMemFreeHost, memory);
        }
    }
    spw_backend_fences_leave(&vm->fences, pushed);
    if (result == CUDA_SUCCESS) {
        *ret_address = address;
        *ret_memory = (uintptr_t)memory;
    }
    return to_err(result);
}

/* Whether the device has nothing to do, as far as anybody can know. */
static bool is_at_rest(struct spw_backend *vm)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    struct spw_fence *fence;
    bool rests;

    if (spw_backend_fence_record(&vm->fences, &all, &fence) != SPW_OK) {
        return false;
    }
    rests = spw_backend_fence_wait_soon(&vm->fences, fence, REST_NS) == SPW_OK;
    spw_backend_fence_drop(&vm->fences, fence);
    return rests;
}

/* The driver waits for the device, which may be waiting for us. */
static enum spw_err vm_unpin(void *cookie, uint64_t memory)
{
    struct spw_backend *vm = cookie;
    CUresult result;
    bool pushed;

    if (!is_at_rest(vm)) {
        return SPW_E_AGAIN;
    }
    result = enter_any(vm, &pushed);
    if (result == CUDA_SUCCESS) {
        result = CALL(vm, cuMemFreeHost, (void *)(uintptr_t)memory);
        spw_backend_fences_leave(&vm->fences, pushed);
    }
    return to_err(result);
}

static enum spw_err vm_probe_pinned(void *cookie, uint64_t address, uint64_t bytes)
{
    struct spw_backend *vm = cookie;
    bool busy;

    return spw_backend_copier_try(&vm->copiers[SPW_TIER_HOST], address + bytes / 2, address,
                                  bytes / 2, &busy);
}

static enum spw_err vm_copy(void *cookie, enum spw_tier to, const struct spw_vm_copy *copies,
                            size_t count, bool after_all, void **ret_fence)
{
    struct spw_backend *vm = cookie;
    struct spw_fence *fence = NULL;
    enum spw_err err;

    *ret_fence = NULL;
    if (atomic_load(&vm->fences.driver->captures_open) > 0) {
        return SPW_E_AGAIN;
    }
    err = spw_backend_copier_copy(&vm->copiers[to], copies, count, after_all, &fence);
    *ret_fence = fence;
    return err;
}

/* Whether the simulated GPU has no room for all content: what is there says nothing then. */
static bool drops_content(const struct spw_driver *driver)
{
    unsigned long long dropped = 0;

    if (driver->simulated_payload != NULL) {
        (void)driver->simulated_payload(&dropped);
    }
    return dropped > 0;
}

static enum spw_err vm_hash(void *cookie, uint64_t address, uint64_t bytes, uint64_t *ret_hash)
{
    struct spw_backend *vm = cookie;

    if (drops_content(vm->fences.driver)) {
        *ret_hash = 0;
        return SPW_OK;
    }
    return spw_backend_copier_hash(&vm->copiers[SPW_TIER_HOST], address, bytes, ret_hash);
}

const struct spw_vm_ops *spw_backend_ops(void)
{
    static const struct spw_vm_ops ops = {
        .reserve = vm_reserve,
        .unreserve = vm_unreserve,
        .create = vm_create,
        .release = vm_release,
        .map = vm_map,
        .set_access = vm_set_access,
        .unmap = vm_unmap,
        .fence = vm_fence,
        .query = vm_query,
        .wait_host = vm_wait_host,
        .wait_soon = vm_wait_soon,
        .wait_stream = vm_wait_stream,
        .defers = vm_defers,
        .drop = vm_drop,
        .probe_host = vm_probe_host,
        .pin = vm_pin,
        .unpin = vm_unpin,
        .probe_pinned = vm_probe_pinned,
        .copy = vm_copy,
        .hash = vm_hash,
    };

    return &ops;
}

/* ---- life ---- */

/* Maps two chunks side by side and tries one call for both. That the unmap says success is not
 * enough: the second half must be free to be mapped again. */
static void try_ranges(struct spw_backend *vm, uint64_t address, const uint64_t chunks[2])
{
    uint64_t g = vm->granule_bytes;

    if (vm_map(vm, address, g, chunks[0]) != SPW_OK) {
        return;
    }
    if (vm_map(vm, address + g, g, chunks[1]) != SPW_OK) {
        (void)CALL(vm, cuMemUnmap, address, g);
        return;
    }
    vm->access_ranges = set_access(vm, address, 2 * g) == CUDA_SUCCESS;
    if (CALL(vm, cuMemUnmap, address, 2 * g) != CUDA_SUCCESS) {
        (void)CALL(vm, cuMemUnmap, address, g);
    } else {
        vm->unmap_ranges = vm_map(vm, address + g, g, chunks[1]) == SPW_OK;
    }
    (void)CALL(vm, cuMemUnmap, address + g, g);
}

/* Finds out what one call may cover; when it cannot be found out, one call for each chunk is always
 * right. */
static void probe_ranges(struct spw_backend *vm)
{
    uint64_t address, chunks[2];

    if (vm_reserve(vm, 2 * vm->granule_bytes, &address) != SPW_OK) {
        return;
    }
    if (vm_create(vm, SPW_TIER_DEVICE, vm->granule_bytes, &chunks[0]) != SPW_OK) {
        goto err_address;
    }
    if (vm_create(vm, SPW_TIER_DEVICE, vm->granule_bytes, &chunks[1]) != SPW_OK) {
        goto err_chunk;
    }
    try_ranges(vm, address, chunks);
    (void)vm_release(vm, chunks[1]);
err_chunk:
    (void)vm_release(vm, chunks[0]);
err_address:
    vm_unreserve(vm, address, 2 * vm->granule_bytes);
}

static enum spw_err ask_device(struct spw_backend *vm)
{
    CUmemAllocationProp prop;
    size_t granule = 0;
    int supported = 0;
    CUresult result = CALL(vm, cuDeviceGet, &vm->device, vm->fences.ordinal);

    if (result == CUDA_SUCCESS) {
        result = CALL(vm, cuDeviceGetAttribute, &supported,
                      CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, vm->device);
    }
    if (result == CUDA_SUCCESS && !supported) {
        return SPW_E_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS) {
        prop = properties(vm, SPW_TIER_DEVICE);
        result = CALL(vm, cuMemGetAllocationGranularity, &granule, &prop,
                      CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    }
    if (result != CUDA_SUCCESS) {
        return to_err(result);
    }
    if (granule == 0 || (granule & (granule - 1)) != 0) {
        return SPW_E_UNSUPPORTED;
    }
    if (CALL(vm, cuDeviceGetAttribute, &vm->host_node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
             vm->device) != CUDA_SUCCESS ||
        vm->host_node < 0) {
        vm->host_node = 0; /* what the driver wants on a machine without NUMA */
    }
    vm->granule_bytes = granule;
    return SPW_OK;
}

enum spw_err spw_backend_create(struct spw_driver *driver, int ordinal, struct spw_backend **ret_vm)
{
    struct spw_backend *vm;
    enum spw_err err;

    if (driver->cuMemAddressReserve == NULL || driver->cuMemGetAllocationGranularity == NULL ||
        driver->cuEventRecord == NULL) {
        return SPW_E_UNSUPPORTED;
    }
    vm = calloc(1, sizeof(*vm));
    if (vm == NULL) {
        return SPW_E_METADATA_NOMEM;
    }
    spw_backend_fences_init(&vm->fences, driver, ordinal);
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        vm->copiers[tier].fences = &vm->fences;
    }
    err = ask_device(vm);
    if (err != SPW_OK) {
        free(vm);
        return err;
    }
    (void)spw_backend_grant(vm, vm->device, true, true);
    probe_ranges(vm);
    *ret_vm = vm;
    return SPW_OK;
}

void spw_backend_destroy(struct spw_backend *vm, bool release)
{
    if (vm != NULL) {
        for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
            spw_backend_copier_fini(&vm->copiers[tier], release);
        }
        spw_backend_fences_fini(&vm->fences, release);
        free(vm);
    }
}

void spw_backend_set_patience(struct spw_backend *vm, uint64_t patience_ns)
{
    vm->patience_ns = patience_ns;
}

int spw_backend_host_node(const struct spw_backend *vm)
{
    return vm->host_node;
}

uint64_t spw_backend_granule(const struct spw_backend *vm)
{
    return vm->granule_bytes;
}

static CUmemAccess_flags access_flags(bool readable, bool writable)
{
    if (writable) {
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    return readable ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

bool spw_backend_grant(struct spw_backend *vm, int accessor, bool readable, bool writable)
{
    CUmemAccess_flags flags = access_flags(readable, writable);
    size_t i = 0;

    while (i < vm->access_count && vm->access[i].location.id != accessor) {
        i++;
    }
    if (i == vm->access_count) {
        if (i == ACCESSORS || flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            return false;
        }
        vm->access_count++;
    } else if (vm->access[i].flags == flags) {
        return false;
    }
    vm->access[i] = (CUmemAccessDesc){
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = accessor}, .flags = flags};
    return true;
}

void spw_backend_note_context(struct spw_backend *vm, CUcontext context, bool peer)
{
    spw_backend_fences_note_context(&vm->fences, context, peer);
}

void spw_backend_forget_contexts(struct spw_backend *vm)
{
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        spw_backend_copier_forget_context(&vm->copiers[tier], vm->copiers[tier].context);
    }
    spw_backend_fences_forget_contexts(&vm->fences);
}

void spw_backend_forget_context(struct spw_backend *vm, CUcontext context)
{
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        spw_backend_copier_forget_context(&vm->copiers[tier], context);
    }
    spw_backend_fences_forget_context(&vm->fences, context);
}
