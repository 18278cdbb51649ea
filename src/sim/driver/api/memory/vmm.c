/* Virtual memory management: reservations, chunks, mappings and access. Rules and error codes
 * follow cuda.h ("Virtual Memory Management"); where cuda.h leaves the behaviour open, options
 * choose it. */
#include "sim/driver/api/entry.h"
#include "sim/driver/core/clock.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/timing.h"
#include "sim/driver/exec/work.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/memory/chunk.h"
#include "sim/driver/memory/mapping.h"
#include "sim/driver/memory/space.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#define HOST_PAGE ((size_t)4096)

/* Counts the chunks that a call has covered, and advances the clock by the time that the chunks
 * cost. May release the lock temporarily. */
static void charge(enum sim_fn fn, const struct sim_covered *covered)
{
    uint64_t ns = sim_timing_of_chunks(fn, covered);

    sim_calls_count_chunks(fn, covered->chunks, covered->bytes);
    if (ns > 0) {
        sim_schedule_step(ns);
    }
}

static void cover(struct sim_covered *covered, const struct sim_chunk *chunk)
{
    covered->chunks++;
    covered->bytes += chunk->size;
    if (chunk->device == NULL) {
        covered->host_chunks++;
        covered->host_bytes += chunk->size;
    }
}

static bool is_granular(uint64_t value)
{
    return (value & (SIM_GRANULE - 1)) == 0;
}

/* It is not documented whether VMM functions count as unsafe during capture. PyTorch's expandable
 * segments call them during a capture in global mode, without a change of the thread's mode. */
static CUresult check_capture(void)
{
    return sim_options()->vmm_unsafe ? sim_capture_unsafe() : CUDA_SUCCESS;
}

SIM_API(cuMemAddressReserve, SIM_HEALTHY,
        (CUdeviceptr * ptr, size_t size, size_t alignment, CUdeviceptr addr,
         unsigned long long flags))
{
    struct sim_reservation *reservation;

    if (ptr == NULL || size == 0 || size % HOST_PAGE != 0 || addr % HOST_PAGE != 0 ||
        (alignment & (alignment - 1)) != 0 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > SIZE_MAX / 4) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    alignment = alignment > SIM_GRANULE ? alignment : SIM_GRANULE;
    reservation = sim_space_reserve(size, alignment, addr, /* internal */ false);
    if (reservation == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ptr = reservation->range.start;
    sim_note("size=%zu -> %#llx", size, (unsigned long long)*ptr);
    return CUDA_SUCCESS;
}

/* A reservation with mappings is refused; cuda.h does not define this. */
SIM_API(cuMemAddressFree, SIM_HEALTHY, (CUdeviceptr ptr, size_t size))
{
    struct sim_reservation *reservation = sim_space_find(ptr);

    sim_note("%#llx size=%zu", (unsigned long long)ptr, size);
    if (reservation == NULL || reservation->internal || reservation->range.start != ptr ||
        reservation->range.size != size || reservation->mappings > 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_space_free(reservation);
    return CUDA_SUCCESS;
}

/* True if the simulated kind of driver crashes at this node. Some drivers crash at a node without
 * memory (nccl#2106). */
static bool dies_at_node(int node)
{
    enum spw_hosts hosts = sim_options()->hosts;

    return hosts == SPW_HOSTS_CRASH ||
           (hosts == SPW_HOSTS_ASYMMETRIC && (node < 0 || node >= (int)sim_options()->host_nodes));
}

static CUresult check_node(int node)
{
    enum spw_hosts hosts = sim_options()->hosts;

    if (hosts == SPW_HOSTS_OFF || hosts == SPW_HOSTS_HOST) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return node >= 0 && (node < (int)sim_options()->host_nodes || dies_at_node(node))
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult check_location(const CUmemAllocationProp *prop)
{
    switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_device_get(prop->location.id) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
        if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        return sim_options()->hosts != SPW_HOSTS_OFF ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return check_node(prop->location.id);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_properties(const CUmemAllocationProp *prop)
{
    if (prop == NULL || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->win32HandleMetaData != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* The handle types of CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_*. */
    if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (prop->allocFlags.gpuDirectRDMACapable) {
        if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (!sim_options()->rdma) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return check_location(prop);
}

SIM_API(cuMemCreate, SIM_HEALTHY,
        (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop,
         unsigned long long flags))
{
    struct sim_covered covered = {0};
    struct sim_chunk *chunk;
    CUresult result;

    if (handle == NULL || size == 0 || !is_granular(size) || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = check_properties(prop);
    if (result == CUDA_SUCCESS) {
        result = check_capture();
    }
    if (result == CUDA_SUCCESS && prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA &&
        dies_at_node(prop->location.id)) {
        raise(SIGSEGV);
    }
    if (result == CUDA_SUCCESS) {
        sim_run_record_asked(prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                                 ? sim_device_get(prop->location.id)
                                 : NULL,
                             size);
        result = sim_chunk_create(prop, size, /* with handle */ true, &chunk);
    }
    if (result != CUDA_SUCCESS) {
        sim_note("size=%zu", size);
        return result;
    }
    chunk->prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE; /* requested, not
                                                                           * granted */
    *handle = chunk->handle;
    sim_note("size=%zu location=%d:%d rdma=%d -> %#llx", size, (int)prop->location.type,
             prop->location.id, prop->allocFlags.gpuDirectRDMACapable, (unsigned long long)*handle);
    cover(&covered, chunk); /* the lock may be released from here on */
    if (covered.host_chunks > 0 && sim_clock_is_on()) {
        sim_schedule_step(sim_timing_of_pinning(size));
    }
    charge(SIM_FN_cuMemCreate, &covered);
    return CUDA_SUCCESS;
}

SIM_API(cuMemRelease, SIM_HEALTHY, (CUmemGenericAllocationHandle handle))
{
    struct sim_chunk *chunk = sim_chunk_find(handle);
    struct sim_covered covered = {0};
    CUresult result;

    sim_note("%#llx", (unsigned long long)handle);
    if (chunk == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = check_capture();
    if (result == CUDA_SUCCESS) {
        cover(&covered, chunk);
        sim_chunk_release(chunk);
        charge(SIM_FN_cuMemRelease, &covered);
    }
    return result;
}

/* cuda.h: offset must be 0. Current drivers also require that a handle is mapped as a whole. */
SIM_API(cuMemMap, SIM_HEALTHY,
        (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
         unsigned long long flags))
{
    struct sim_reservation *reservation = sim_space_find(ptr);
    struct sim_chunk *chunk = sim_chunk_find(handle);
    struct sim_covered covered = {0};
    const struct sim_mapping *next;
    struct sim_mapping *mapping;
    CUresult result;

    sim_note("%#llx size=%zu %#llx", (unsigned long long)ptr, size, (unsigned long long)handle);
    if (chunk == NULL || offset != 0 || flags != 0 || size != chunk->size || !is_granular(ptr) ||
        reservation == NULL || reservation->internal ||
        size > sim_range_end(&reservation->range) - ptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    next = sim_mapping_from(ptr);
    if (next != NULL && next->range.start < ptr + size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = check_capture();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_mapping_create(reservation, ptr, chunk, SIM_MAPPING_USER, &mapping);
    if (result == CUDA_SUCCESS) {
        cover(&covered, chunk);
        charge(SIM_FN_cuMemMap, &covered);
    }
    return result;
}

/* True if the range consists of whole mappings of the application or, with SPW_PER_CHUNK, of
 * exactly one. */
static bool is_mapped_range(CUdeviceptr ptr, size_t size, enum spw_per per)
{
    const struct sim_mapping *first = sim_mapping_find(ptr);

    if (size == 0 || ptr + size < ptr || first == NULL || first->kind != SIM_MAPPING_USER) {
        return false;
    }
    if (per == SPW_PER_CHUNK && first->range.size != size) {
        return false;
    }
    return sim_mapping_fills(ptr, ptr + size);
}

static struct sim_covered chunks_in(CUdeviceptr ptr, size_t size)
{
    struct sim_covered covered = {0};

    for (const struct sim_mapping *mapping = sim_mapping_from(ptr);
         mapping != NULL && mapping->range.start < ptr + size;
         mapping = sim_mapping_next(mapping)) {
        cover(&covered, mapping->chunk);
    }
    return covered;
}

/* The devices that may use part of the range. */
static uint64_t devices_of(CUdeviceptr ptr, size_t size)
{
    uint64_t devices = 0;

    for (const struct sim_mapping *mapping = sim_mapping_from(ptr);
         mapping != NULL && mapping->range.start < ptr + size;
         mapping = sim_mapping_next(mapping)) {
        devices |= mapping->readers | mapping->writers;
    }
    return devices;
}

static CUresult wait_for_devices(uint64_t devices)
{
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < sim_device_count() && result == CUDA_SUCCESS; i++) {
        if ((devices >> i & 1) != 0) {
            result = sim_work_drain_device(sim_device_get(i));
        }
    }
    return result;
}

/* cuda.h: a mapping cannot be unmapped in part. Options decide whether one call may unmap several
 * mappings, and whether it waits for queued work. */
SIM_API(cuMemUnmap, SIM_HEALTHY, (CUdeviceptr ptr, size_t size))
{
    enum spw_per per = sim_options()->unmap;
    CUresult result;
    struct sim_covered covered;

    sim_note("%#llx size=%zu", (unsigned long long)ptr, size);
    if (!is_mapped_range(ptr, size, per)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = check_capture();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (sim_options()->unmap_waits) {
        result = wait_for_devices(devices_of(ptr, size));
        if (result != CUDA_SUCCESS) {
            return result;
        }
        if (!is_mapped_range(ptr, size, per)) {
            return CUDA_ERROR_INVALID_VALUE; /* changed while the lock was released */
        }
    }
    sim_work_check_unused(ptr, size, devices_of(ptr, size), "cuMemUnmap");
    covered = chunks_in(ptr, size);
    sim_mapping_remove(ptr, ptr + size);
    charge(SIM_FN_cuMemUnmap, &covered);
    return CUDA_SUCCESS;
}

static bool is_host_location(CUmemLocationType type)
{
    return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static bool is_access(CUmemAccess_flags flags)
{
    return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
           flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/* Checks that the access may be granted on every mapping of the range. cuda.h: host access to
 * device memory may not be granted. */
static CUresult check_access(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc)
{
    const struct sim_device *device = NULL;

    if (!is_access(desc->flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        device = sim_device_get(desc->location.id);
        if (device == NULL) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
    } else if (!is_host_location(desc->location.type)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const struct sim_mapping *mapping = sim_mapping_from(ptr);
         mapping != NULL && mapping->range.start < ptr + size;
         mapping = sim_mapping_next(mapping)) {
        const struct sim_device *owner = mapping->chunk->device;

        if (device == NULL && owner != NULL) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (device != NULL && owner != NULL && !sim_device_can_access(device, owner)) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
    }
    return CUDA_SUCCESS;
}

static void grant(struct sim_mapping *mapping, const CUmemAccessDesc *desc)
{
    bool read = desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    bool write = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    uint64_t bit;

    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        mapping->host_prot = (read ? PROT_READ : 0) | (write ? PROT_WRITE : 0);
        return;
    }
    bit = UINT64_C(1) << desc->location.id;
    mapping->readers = read ? mapping->readers | bit : mapping->readers & ~bit;
    mapping->writers = write ? mapping->writers | bit : mapping->writers & ~bit;
}

/* The devices that already have access to a mapping and are given access again. */
static uint64_t regranted(const struct sim_mapping *mapping, const CUmemAccessDesc *desc,
                          size_t count)
{
    uint64_t devices = 0;

    for (size_t i = 0; i < count; i++) {
        if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
            desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            devices |= UINT64_C(1) << desc[i].location.id;
        }
    }
    return devices & mapping->readers;
}

/* It is not documented whether a device's access stays valid while the access is granted again. The
 * open kernel module unmaps a range before it maps the range again (uvm_map_external.c). */
static void check_regrant(const struct sim_mapping *mapping, const CUmemAccessDesc *desc,
                          size_t count)
{
    uint64_t devices = sim_options()->regrant_unsafe ? regranted(mapping, desc, count) : 0;

    if (devices != 0) {
        sim_work_check_unused(mapping->range.start, mapping->range.size, devices, "cuMemSetAccess");
    }
}

SIM_API(cuMemSetAccess, SIM_HEALTHY,
        (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count))
{
    struct sim_covered covered;
    CUresult result;

    sim_note("%#llx size=%zu count=%zu", (unsigned long long)ptr, size, count);
    if (desc == NULL || count == 0 || !is_mapped_range(ptr, size, sim_options()->set_access)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        result = check_access(ptr, size, &desc[i]);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    result = check_capture();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    for (struct sim_mapping *mapping = sim_mapping_from(ptr);
         mapping != NULL && mapping->range.start < ptr + size;
         mapping = sim_mapping_next(mapping)) {
        check_regrant(mapping, desc, count);
        for (size_t i = 0; i < count; i++) {
            grant(mapping, &desc[i]);
        }
    }
    sim_mapping_apply(ptr, ptr + size);
    covered = chunks_in(ptr, size);
    charge(SIM_FN_cuMemSetAccess, &covered);
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetAccess, SIM_HEALTHY,
        (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr))
{
    const struct sim_mapping *mapping = sim_mapping_find(ptr);
    bool read, write;

    if (flags == NULL || location == NULL || mapping == NULL || mapping->kind != SIM_MAPPING_USER) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        const struct sim_device *device = sim_device_get(location->id);

        if (device == NULL) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        read = sim_mapping_allows(mapping, device, false);
        write = sim_mapping_allows(mapping, device, true);
    } else if (is_host_location(location->type)) {
        read = (mapping->host_prot & PROT_READ) != 0;
        write = (mapping->host_prot & PROT_WRITE) != 0;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                   : (read ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE);
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetAllocationGranularity, SIM_HEALTHY,
        (size_t * granularity, const CUmemAllocationProp *prop,
         CUmemAllocationGranularity_flags option))
{
    CUresult result;

    if (granularity == NULL || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                                option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = check_properties(prop);
    if (result == CUDA_SUCCESS) {
        *granularity = SIM_GRANULE;
    }
    return result;
}

SIM_API(cuMemGetAllocationPropertiesFromHandle, SIM_HEALTHY,
        (CUmemAllocationProp * prop, CUmemGenericAllocationHandle handle))
{
    const struct sim_chunk *chunk = sim_chunk_find(handle);

    if (prop == NULL || chunk == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *prop = chunk->prop;
    return CUDA_SUCCESS;
}

/* cuda.h: `addr` is any address in the mapping; the caller must release the handle. */
SIM_API(cuMemRetainAllocationHandle, SIM_HEALTHY,
        (CUmemGenericAllocationHandle * handle, void *addr))
{
    const struct sim_mapping *mapping = sim_mapping_find((uintptr_t)addr);
    CUresult result;

    if (handle == NULL || mapping == NULL || mapping->kind != SIM_MAPPING_USER) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_chunk_retain(mapping->chunk);
    if (result == CUDA_SUCCESS) {
        *handle = mapping->chunk->handle;
    }
    return result;
}

SIM_API(cuMemExportToShareableHandle, SIM_HEALTHY,
        (void *shareableHandle, CUmemGenericAllocationHandle handle,
         CUmemAllocationHandleType handleType, unsigned long long flags))
{
    struct sim_chunk *chunk = sim_chunk_find(handle);
    int fd;

    if (shareableHandle == NULL || chunk == NULL || flags != 0 ||
        (chunk->prop.requestedHandleTypes & handleType) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fd = sim_mapping_export(chunk);
    if (fd < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    memcpy(shareableHandle, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}

/* The file descriptor is passed as a number cast to a pointer. The caller keeps the descriptor. */
SIM_API(cuMemImportFromShareableHandle, SIM_HEALTHY,
        (CUmemGenericAllocationHandle * handle, void *osHandle,
         CUmemAllocationHandleType shHandleType))
{
    struct sim_chunk *chunk;
    CUresult result;

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    result = sim_chunk_import((int)(intptr_t)osHandle, &chunk);
    if (result == CUDA_SUCCESS) {
        *handle = chunk->handle;
    }
    return result;
}
