#include "backend/backend.h"

#include <stdlib.h>

#include "backend/copy.h"
#include "backend/fence.h"
#include "backend/host.h"
#include "system/sleep.h"

enum {
    ACCESSORS = 64,
    ACCESS_RETRIES = 50,
    ACCESS_PAUSE_NS = 200 * 1000,
    IDLE_WAIT_NS = 20 * 1000 * 1000
};

struct spw_backend {
    struct spw_vm vm;
    struct spw_backend_fences fences;
    struct spw_backend_copier copiers[SPW_TIER_COUNT]; /* indexed by destination tier */
    uint64_t patience_ns;
    uint64_t (*room)(int ordinal); /* NULL: not known */
    CUdevice device;
    uint64_t granule_bytes;
    CUmemLocation host; /* the location of host chunks, if `host_found` */
    bool host_sought, host_found;
    bool rdma; /* network cards can register device chunks, as they can memory of cudaMalloc */
    bool unmap_ranges, access_ranges; /* one call may cover neighbouring mappings */
    CUmemAccessDesc access[ACCESSORS];
    size_t access_count, access_changed; /* number of entries; index of the one that changed last */
};

#define CALL(backend, fn, ...)                                                                     \
    SPW_DRIVER_CALL((backend)->fences.driver, (backend)->fences.ordinal, fn, __VA_ARGS__)

static enum spw_err to_err(CUresult result)
{
    return spw_err_from_driver((int)result);
}

static CUmemAllocationProp properties(const struct spw_backend *backend, enum spw_tier tier)
{
    const CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = backend->device};

    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = tier == SPW_TIER_HOST ? backend->host : device,
        .allocFlags.gpuDirectRDMACapable = tier == SPW_TIER_DEVICE && backend->rdma,
    };
}

static struct spw_backend *of(struct spw_vm *vm)
{
    return (struct spw_backend *)vm;
}

/* ---- memory ---- */

static enum spw_err vm_reserve(struct spw_vm *vm, uint64_t bytes, uint64_t *ret_address)
{
    struct spw_backend *backend = of(vm);
    CUdeviceptr address = 0;
    CUresult result =
        CALL(backend, cuMemAddressReserve, &address, bytes, backend->granule_bytes, 0, 0);

    if (result == CUDA_SUCCESS) {
        *ret_address = address;
    }
    return to_err(result);
}

static void vm_unreserve(struct spw_vm *vm, uint64_t address, uint64_t bytes)
{
    (void)CALL(of(vm), cuMemAddressFree, address, bytes);
}

static enum spw_err create(struct spw_backend *backend, CUmemAllocationProp prop, uint64_t bytes,
                           uint64_t *ret_chunk)
{
    CUmemGenericAllocationHandle handle = 0;
    CUresult result = CALL(backend, cuMemCreate, &handle, bytes, &prop, 0);

    if (prop.allocFlags.gpuDirectRDMACapable && result != CUDA_SUCCESS &&
        result != CUDA_ERROR_OUT_OF_MEMORY) {
        /* The device claims support, but memory without the flag is better than none. */
        prop.allocFlags.gpuDirectRDMACapable = 0;
        result = CALL(backend, cuMemCreate, &handle, bytes, &prop, 0);
        backend->rdma = result != CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS) {
        *ret_chunk = handle;
    }
    return to_err(result);
}

static enum spw_err vm_create(struct spw_vm *vm, enum spw_tier tier, uint64_t bytes,
                              uint64_t *ret_chunk)
{
    return create(of(vm), properties(of(vm), tier), bytes, ret_chunk);
}

static enum spw_err vm_create_exportable(struct spw_vm *vm, uint64_t bytes, uint64_t *ret_chunk)
{
    CUmemAllocationProp prop = properties(of(vm), SPW_TIER_DEVICE);

    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return create(of(vm), prop, bytes, ret_chunk);
}

static uint64_t vm_room(struct spw_vm *vm)
{
    const struct spw_backend *backend = of(vm);

    return backend->room != NULL ? backend->room(backend->fences.ordinal) : UINT64_MAX;
}

static enum spw_err vm_release(struct spw_vm *vm, uint64_t chunk)
{
    return to_err(CALL(of(vm), cuMemRelease, chunk));
}

static enum spw_err vm_map(struct spw_vm *vm, uint64_t address, uint64_t bytes, uint64_t chunk)
{
    return to_err(CALL(of(vm), cuMemMap, address, bytes, 0, chunk, 0));
}

/* The driver sometimes answers NOT_READY while the device is busy (reported under load). A little
 * later the same call succeeds. */
static CUresult set_access_to(struct spw_backend *backend, uint64_t address, uint64_t bytes,
                              const CUmemAccessDesc *access, size_t count)
{
    CUresult result = CALL(backend, cuMemSetAccess, address, bytes, access, count);

    for (int i = 0; i < ACCESS_RETRIES && result == CUDA_ERROR_NOT_READY; i++) {
        spw_sleep_ns(ACCESS_PAUSE_NS);
        result = CALL(backend, cuMemSetAccess, address, bytes, access, count);
    }
    return result;
}

static CUresult set_access(struct spw_backend *backend, uint64_t address, uint64_t bytes)
{
    return set_access_to(backend, address, bytes, backend->access, backend->access_count);
}

/* Gives access to a range, in one call or one call for each chunk. */
static enum spw_err set_access_each(struct spw_backend *backend, uint64_t address, uint64_t bytes,
                                    uint64_t chunk_bytes, const CUmemAccessDesc *access,
                                    size_t count)
{
    uint64_t step = backend->access_ranges ? bytes : chunk_bytes;
    CUresult result = CUDA_SUCCESS;

    for (uint64_t done = 0; done < bytes && result == CUDA_SUCCESS; done += step) {
        result = set_access_to(backend, address + done, step, access, count);
    }
    return to_err(result);
}

static enum spw_err vm_set_access(struct spw_vm *vm, uint64_t address, uint64_t bytes,
                                  uint64_t chunk_bytes)
{
    struct spw_backend *backend = of(vm);

    return set_access_each(backend, address, bytes, chunk_bytes, backend->access,
                           backend->access_count);
}

/* Sets the access of one device only. Other devices may be using theirs, which does not change. */
static enum spw_err vm_share(struct spw_vm *vm, uint64_t address, uint64_t bytes,
                             uint64_t chunk_bytes)
{
    struct spw_backend *backend = of(vm);

    return set_access_each(backend, address, bytes, chunk_bytes,
                           &backend->access[backend->access_changed], 1);
}

static enum spw_err vm_unmap(struct spw_vm *vm, uint64_t address, uint64_t bytes,
                             uint64_t chunk_bytes, uint64_t *ret_done)
{
    struct spw_backend *backend = of(vm);
    uint64_t step = backend->unmap_ranges ? bytes : chunk_bytes;

    for (uint64_t done = 0; done < bytes; done += step) {
        CUresult result = CALL(backend, cuMemUnmap, address + done, step);

        if (result != CUDA_SUCCESS) {
            *ret_done = done;
            return to_err(result);
        }
    }
    return SPW_OK;
}

/* ---- fences ---- */

static enum spw_err vm_fence(struct spw_vm *vm, const struct spw_stream *stream, void **ret_fence)
{
    struct spw_backend_fence *fence;
    enum spw_err err = spw_backend_fence_record(&of(vm)->fences, stream, &fence);

    if (err == SPW_OK) {
        *ret_fence = fence;
    }
    return err;
}

static enum spw_err vm_query(struct spw_vm *vm, void *fence)
{
    return spw_backend_fence_query(&of(vm)->fences, fence);
}

static enum spw_err vm_wait_host(struct spw_vm *vm, void *fence)
{
    return spw_backend_fence_wait(&of(vm)->fences, fence);
}

static enum spw_err vm_wait_soon(struct spw_vm *vm, void *fence)
{
    struct spw_backend *backend = of(vm);

    /* The driver's wait for a whole context has no time limit. The pool waits for deferred fences
     * last. */
    if (spw_backend_fence_is_deferred(&backend->fences, fence)) {
        return spw_backend_fence_wait(&backend->fences, fence);
    }
    return spw_backend_fence_wait_soon(&backend->fences, fence, backend->patience_ns);
}

static bool vm_defers(struct spw_vm *vm)
{
    return spw_backend_fences_defer(&of(vm)->fences);
}

static enum spw_err vm_wait_stream(struct spw_vm *vm, const struct spw_stream *stream, void *fence)
{
    return spw_backend_fence_wait_stream(&of(vm)->fences, stream, fence);
}

static void vm_drop(struct spw_vm *vm, void *fence)
{
    spw_backend_fence_drop(&of(vm)->fences, fence);
}

/* ---- the host ---- */

/* Maps a host chunk of two granules. The device writes the first and copies it to the second. */
static enum spw_err probe_chunk(struct spw_backend *backend, uint64_t address, uint64_t chunk,
                                bool *ret_busy)
{
    uint64_t g = backend->granule_bytes;
    enum spw_err err = vm_map(&backend->vm, address, 2 * g, chunk);

    if (err != SPW_OK) {
        return err;
    }
    err = to_err(set_access(backend, address, 2 * g));
    if (err == SPW_OK) {
        err = spw_backend_copier_probe(&backend->copiers[SPW_TIER_HOST], address + g, address, g,
                                       ret_busy);
    }
    if (!*ret_busy) {
        (void)CALL(backend, cuMemUnmap, address, 2 * g);
    }
    return err;
}

/* Probes all steps of using host memory at the place that was found. Needs no device memory, which
 * may be full. */
static enum spw_err probe_place(struct spw_backend *backend, uint64_t address, bool *ret_busy)
{
    CUmemAllocationProp prop = properties(backend, SPW_TIER_HOST);
    size_t granule = 0;
    uint64_t chunk = 0;
    enum spw_err err;

    err = to_err(CALL(backend, cuMemGetAllocationGranularity, &granule, &prop,
                      CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    if (err != SPW_OK || granule == 0 || backend->granule_bytes % granule != 0) {
        return SPW_E_UNSUPPORTED;
    }
    err = vm_create(&backend->vm, SPW_TIER_HOST, 2 * backend->granule_bytes, &chunk);
    if (err != SPW_OK) {
        return err;
    }
    err = probe_chunk(backend, address, chunk, ret_busy);
    (void)vm_release(&backend->vm, chunk); /* the memory is freed when its mapping ends */
    return err;
}

/* Tries whether the driver can record the events of a fence of the device. */
static bool has_device_fences(struct spw_backend *backend)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    struct spw_backend_fence *fence;

    if (spw_backend_fence_record(&backend->fences, &all, &fence) == SPW_OK) {
        spw_backend_fence_drop(&backend->fences, fence);
    }
    return !spw_backend_fences_defer(&backend->fences);
}

static void vm_seek_host(struct spw_vm *vm)
{
    struct spw_backend *backend = of(vm);

    if (!backend->host_sought) {
        backend->host_found = spw_backend_host_seek(backend->fences.driver, backend->fences.ordinal,
                                                    backend->device, &backend->host);
        backend->host_sought = true;
    }
}

static enum spw_err vm_probe_host(struct spw_vm *vm, bool *ret_moves)
{
    struct spw_backend *backend = of(vm);
    bool busy = false;
    uint64_t address = 0;
    enum spw_err err;

    if (!backend->host_found) {
        return SPW_E_UNSUPPORTED;
    }
    if (atomic_load(&backend->fences.driver->captures_open) > 0) {
        return SPW_E_AGAIN;
    }
    err = vm_reserve(&backend->vm, 2 * backend->granule_bytes, &address);
    if (err != SPW_OK) {
        return err;
    }
    err = probe_place(backend, address, &busy);
    if (!busy) {
        vm_unreserve(&backend->vm, address, 2 * backend->granule_bytes);
    }
    /* Migration needs fences of the whole device that complete by themselves. */
    *ret_moves = err == SPW_OK && has_device_fences(backend);
    return err;
}

/* The primary context if it is active; NULL if it is not, or while another thread retains or
 * releases it. */
static CUcontext active_primary(struct spw_backend *backend)
{
    const struct spw_driver *driver = backend->fences.driver;
    CUcontext primary = NULL;
    unsigned int flags;
    int active = 0;

    if (driver->cuDevicePrimaryCtxGetState == NULL || !spw_lock_try(&spw_locks.primary)) {
        return NULL;
    }
    if (CALL(backend, cuDevicePrimaryCtxGetState, backend->device, &flags, &active) ==
            CUDA_SUCCESS &&
        active != 0 &&
        CALL(backend, cuDevicePrimaryCtxRetain, &primary, backend->device) == CUDA_SUCCESS) {
        (void)CALL(backend, cuDevicePrimaryCtxRelease_v2, backend->device);
    }
    spw_unlock(&spw_locks.primary);
    return primary;
}

/* Page-locked memory is usable in all contexts until the context that allocated it is gone. So it
 * is allocated in the primary context, which is likely to outlive the others. If the primary
 * context is not active, the context that asks is used or, without one, the oldest. */
static void choose_home(struct spw_backend *backend, CUcontext asking, struct spw_vm_pinned *pinned)
{
    CUcontext primary = active_primary(backend);

    pinned->lasting = primary != NULL;
    pinned->context = primary != NULL  ? primary
                      : asking != NULL ? asking
                                       : spw_backend_fences_own_context(&backend->fences);
}

static CUresult enter_any(struct spw_backend *backend, bool *ret_pushed)
{
    return spw_backend_fences_enter(&backend->fences,
                                    spw_backend_fences_own_context(&backend->fences), ret_pushed);
}

static enum spw_err vm_pin(struct spw_vm *vm, void *context, uint64_t bytes,
                           struct spw_vm_pinned *ret_pinned)
{
    struct spw_backend *backend = of(vm);
    struct spw_vm_pinned pinned = {0};
    CUdeviceptr address = 0;
    void *memory = NULL;
    bool pushed;
    CUresult result;

    choose_home(backend, context, &pinned);
    result = spw_backend_fences_enter(&backend->fences, pinned.context, &pushed);
    if (result != CUDA_SUCCESS) {
        return to_err(result);
    }
    result = CALL(backend, cuMemHostAlloc, &memory, (size_t)bytes,
                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS) {
        result = backend->fences.driver->cuMemHostGetDevicePointer_v2 == NULL
                     ? CUDA_ERROR_NOT_SUPPORTED
                     : CALL(backend, cuMemHostGetDevicePointer_v2, &address, memory, 0);
        if (result != CUDA_SUCCESS) {
            (void)CALL(backend, cuMemFreeHost, memory);
        }
    }
    spw_backend_fences_leave(&backend->fences, pushed);
    if (result == CUDA_SUCCESS) {
        pinned.address = address;
        pinned.memory = (uintptr_t)memory;
        *ret_pinned = pinned;
    }
    return to_err(result);
}

/* True when all known work of the device is complete. */
static bool is_idle(struct spw_backend *backend)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    struct spw_backend_fence *fence;
    bool idle;

    if (spw_backend_fence_record(&backend->fences, &all, &fence) != SPW_OK) {
        return false;
    }
    idle = spw_backend_fence_wait_soon(&backend->fences, fence, IDLE_WAIT_NS) == SPW_OK;
    spw_backend_fence_drop(&backend->fences, fence);
    return idle;
}

/* Frees only while the device is idle: cuMemFreeHost waits for the device, whose work may wait for
 * the calling thread. */
static enum spw_err vm_unpin(struct spw_vm *vm, uint64_t memory)
{
    struct spw_backend *backend = of(vm);
    CUresult result;
    bool pushed;

    if (!is_idle(backend)) {
        return SPW_E_AGAIN;
    }
    result = enter_any(backend, &pushed);
    if (result == CUDA_SUCCESS) {
        result = CALL(backend, cuMemFreeHost, (void *)(uintptr_t)memory);
        spw_backend_fences_leave(&backend->fences, pushed);
    }
    return to_err(result);
}

static enum spw_err vm_probe_pinned(struct spw_vm *vm, uint64_t address, uint64_t bytes)
{
    struct spw_backend *backend = of(vm);
    bool busy;

    return spw_backend_copier_probe(&backend->copiers[SPW_TIER_HOST], address + bytes / 2, address,
                                    bytes / 2, &busy);
}

static enum spw_err vm_copy(struct spw_vm *vm, enum spw_tier to, const struct spw_vm_copy *copies,
                            size_t count, bool after_all, void **ret_fence)
{
    struct spw_backend *backend = of(vm);
    struct spw_backend_fence *fence = NULL;
    enum spw_err err;

    *ret_fence = NULL;
    if (atomic_load(&backend->fences.driver->captures_open) > 0) {
        return SPW_E_AGAIN;
    }
    err = spw_backend_copier_copy(&backend->copiers[to], copies, count, after_all, &fence);
    *ret_fence = fence;
    return err;
}

static enum spw_err vm_read(struct spw_vm *vm, void *to, uint64_t address, uint64_t bytes)
{
    struct spw_backend *backend = of(vm);

    return spw_backend_copier_read(&backend->copiers[SPW_TIER_HOST], to, address, bytes);
}

static enum spw_err vm_write(struct spw_vm *vm, uint64_t address, const void *from, uint64_t bytes)
{
    struct spw_backend *backend = of(vm);

    return spw_backend_copier_write(&backend->copiers[SPW_TIER_DEVICE], address, from, bytes);
}

/* True when the simulated GPU has dropped content for lack of memory. Then contents prove
 * nothing. */
static bool drops_content(const struct spw_driver *driver)
{
    unsigned long long dropped = 0;

    if (driver->simulated_payload != NULL) {
        (void)driver->simulated_payload(&dropped);
    }
    return dropped > 0;
}

static enum spw_err vm_hash(struct spw_vm *vm, uint64_t address, uint64_t bytes, uint64_t *ret_hash)
{
    struct spw_backend *backend = of(vm);

    if (drops_content(backend->fences.driver)) {
        *ret_hash = 0;
        return SPW_OK;
    }
    return spw_backend_copier_hash(&backend->copiers[SPW_TIER_HOST], address, bytes, ret_hash);
}

static const struct spw_vm_ops vm_ops = {
    .reserve = vm_reserve,
    .unreserve = vm_unreserve,
    .room = vm_room,
    .create = vm_create,
    .release = vm_release,
    .create_exportable = vm_create_exportable,
    .map = vm_map,
    .set_access = vm_set_access,
    .share = vm_share,
    .unmap = vm_unmap,
    .fence = vm_fence,
    .query = vm_query,
    .wait_host = vm_wait_host,
    .wait_soon = vm_wait_soon,
    .wait_stream = vm_wait_stream,
    .defers = vm_defers,
    .drop = vm_drop,
    .seek_host = vm_seek_host,
    .probe_host = vm_probe_host,
    .pin = vm_pin,
    .unpin = vm_unpin,
    .probe_pinned = vm_probe_pinned,
    .copy = vm_copy,
    .read = vm_read,
    .write = vm_write,
    .hash = vm_hash,
};

/* ---- life ---- */

/* Maps two chunks side by side and tries one call for both. A successful unmap alone proves
 * nothing, so the second half is mapped again. */
static void probe_ranges_with(struct spw_backend *backend, uint64_t address,
                              const uint64_t chunks[2])
{
    uint64_t g = backend->granule_bytes;

    if (vm_map(&backend->vm, address, g, chunks[0]) != SPW_OK) {
        return;
    }
    if (vm_map(&backend->vm, address + g, g, chunks[1]) != SPW_OK) {
        (void)CALL(backend, cuMemUnmap, address, g);
        return;
    }
    backend->access_ranges = set_access(backend, address, 2 * g) == CUDA_SUCCESS;
    if (CALL(backend, cuMemUnmap, address, 2 * g) != CUDA_SUCCESS) {
        (void)CALL(backend, cuMemUnmap, address, g);
    } else {
        backend->unmap_ranges = vm_map(&backend->vm, address + g, g, chunks[1]) == SPW_OK;
    }
    (void)CALL(backend, cuMemUnmap, address + g, g);
}

/* Probes whether one call may cover several mappings. If the probe cannot be made, each chunk gets
 * its own call, which is always right. */
static void probe_ranges(struct spw_backend *backend)
{
    uint64_t address, chunks[2];

    if (vm_reserve(&backend->vm, 2 * backend->granule_bytes, &address) != SPW_OK) {
        return;
    }
    if (vm_create(&backend->vm, SPW_TIER_DEVICE, backend->granule_bytes, &chunks[0]) != SPW_OK) {
        goto err_address;
    }
    if (vm_create(&backend->vm, SPW_TIER_DEVICE, backend->granule_bytes, &chunks[1]) != SPW_OK) {
        goto err_chunk;
    }
    probe_ranges_with(backend, address, chunks);
    (void)vm_release(&backend->vm, chunks[1]);
err_chunk:
    (void)vm_release(&backend->vm, chunks[0]);
err_address:
    vm_unreserve(&backend->vm, address, 2 * backend->granule_bytes);
}

static bool supports_rdma(struct spw_backend *backend)
{
    int supported = 0;

    return CALL(backend, cuDeviceGetAttribute, &supported,
                CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                backend->device) == CUDA_SUCCESS &&
           supported;
}

static enum spw_err ask_device(struct spw_backend *backend)
{
    CUmemAllocationProp prop;
    size_t granule = 0;
    int supported = 0;
    CUresult result = CALL(backend, cuDeviceGet, &backend->device, backend->fences.ordinal);

    if (result == CUDA_SUCCESS) {
        result = CALL(backend, cuDeviceGetAttribute, &supported,
                      CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, backend->device);
    }
    if (result == CUDA_SUCCESS && !supported) {
        return SPW_E_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS) {
        backend->rdma = supports_rdma(backend);
        prop = properties(backend, SPW_TIER_DEVICE);
        result = CALL(backend, cuMemGetAllocationGranularity, &granule, &prop,
                      CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    }
    if (result != CUDA_SUCCESS) {
        return to_err(result);
    }
    if (granule == 0 || (granule & (granule - 1)) != 0) {
        return SPW_E_UNSUPPORTED;
    }
    backend->granule_bytes = granule;
    return SPW_OK;
}

struct spw_vm *spw_backend_vm(struct spw_backend *backend)
{
    return &backend->vm;
}

enum spw_err spw_backend_create(struct spw_driver *driver, int ordinal,
                                struct spw_backend **ret_backend)
{
    struct spw_backend *backend;
    enum spw_err err;

    if (driver->cuMemAddressReserve == NULL || driver->cuMemGetAllocationGranularity == NULL ||
        driver->cuEventRecord == NULL) {
        return SPW_E_UNSUPPORTED;
    }
    backend = calloc(1, sizeof(*backend));
    if (backend == NULL) {
        return SPW_E_METADATA_NOMEM;
    }
    backend->vm.ops = &vm_ops;
    spw_backend_fences_init(&backend->fences, driver, ordinal);
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        backend->copiers[tier].fences = &backend->fences;
    }
    err = ask_device(backend);
    if (err != SPW_OK) {
        spw_backend_destroy(backend, false);
        return err;
    }
    (void)spw_backend_grant(backend, backend->device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    probe_ranges(backend);
    *ret_backend = backend;
    return SPW_OK;
}

void spw_backend_destroy(struct spw_backend *backend, bool release)
{
    if (backend != NULL) {
        for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
            spw_backend_copier_fini(&backend->copiers[tier], release);
        }
        spw_backend_fences_fini(&backend->fences, release);
        free(backend);
    }
}

void spw_backend_set_patience(struct spw_backend *backend, uint64_t patience_ns)
{
    backend->patience_ns = patience_ns;
}

void spw_backend_set_room(struct spw_backend *backend, uint64_t (*room)(int ordinal))
{
    backend->room = room;
}

CUmemLocation spw_backend_host_place(const struct spw_backend *backend)
{
    return backend->host;
}

uint64_t spw_backend_granule(const struct spw_backend *backend)
{
    return backend->granule_bytes;
}

bool spw_backend_grant(struct spw_backend *backend, int accessor, CUmemAccess_flags access)
{
    size_t i = 0;

    while (i < backend->access_count && backend->access[i].location.id != accessor) {
        i++;
    }
    if (i == backend->access_count) {
        if (i == ACCESSORS || access == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            return false;
        }
        backend->access_count++;
    } else if (backend->access[i].flags == access) {
        return false;
    }
    backend->access[i] = (CUmemAccessDesc){
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = accessor}, .flags = access};
    backend->access_changed = i;
    return true;
}

void spw_backend_note_context(struct spw_backend *backend, CUcontext context, bool peer)
{
    spw_backend_fences_note_context(&backend->fences, context, peer);
}

void spw_backend_forget_contexts(struct spw_backend *backend)
{
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        spw_backend_copier_forget_context(&backend->copiers[tier], backend->copiers[tier].context);
    }
    spw_backend_fences_forget_contexts(&backend->fences);
}

static void forget_copiers(struct spw_backend *backend, CUcontext context)
{
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        spw_backend_copier_forget_context(&backend->copiers[tier], context);
    }
}

void spw_backend_end_context(struct spw_backend *backend, CUcontext context)
{
    spw_backend_fences_end_context(&backend->fences, context);
    forget_copiers(backend, context);
}

void spw_backend_forget_context(struct spw_backend *backend, CUcontext context)
{
    forget_copiers(backend, context);
    spw_backend_fences_forget_context(&backend->fences, context);
}
