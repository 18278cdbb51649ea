#include "program/peer.h"

#include "device/lookup.h"
#include "program/stream.h"

static bool may_access(const struct spw_device *owner, int ordinal, bool write)
{
    uint8_t access = atomic_load(&owner->access[ordinal]);

    return owner->ordinal == ordinal || access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
           (!write && access == CU_MEM_ACCESS_FLAGS_PROT_READ);
}

/* The ordinal of the device in whose memory an address is; negative for memory of the host. `owner`
 * is the device whose pool has the block; NULL: the memory is not ours, and the driver is asked. */
static int ordinal_of(const struct spw_device *owner, CUdeviceptr address)
{
    struct spw_driver *driver = spw_process_driver();
    unsigned type = 0;
    int ordinal = -1;

    if (owner != NULL) {
        return owner->ordinal;
    }
    if (SPW_DRIVER_CALL(driver, -1, cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                        address) != CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE ||
        SPW_DRIVER_CALL(driver, -1, cuPointerGetAttribute, &ordinal,
                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS) {
        return -1;
    }
    return ordinal;
}

/* A context of a device, if possible the stream's context. NULL when none is known. */
static CUcontext context_on(int ordinal, const struct spw_stream_info *info)
{
    size_t cursor = 0;

    return info->ordinal == ordinal ? info->stream.context
                                    : spw_device_contexts_next(ordinal, &cursor);
}

bool spw_program_peer_find(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool per_thread,
                           struct spw_peer *ret_peer)
{
    struct spw_pool *pool;
    const struct spw_device *to_owner = spw_device_owner(to, &pool);
    const struct spw_device *from_owner = spw_device_owner(from, &pool);
    const struct spw_stream_info *info;
    struct spw_peer peer;
    int to_ordinal, from_ordinal;

    if (spw_device_count() < 2 || (to_owner == NULL && from_owner == NULL)) {
        return false;
    }
    info = spw_program_stream_get(stream, per_thread);
    if (info == NULL ||
        ((to_owner == NULL || may_access(to_owner, info->ordinal, /* write */ true)) &&
         (from_owner == NULL || may_access(from_owner, info->ordinal, /* write */ false)))) {
        return false;
    }
    to_ordinal = ordinal_of(to_owner, to);
    from_ordinal = ordinal_of(from_owner, from);
    if (to_ordinal < 0 || from_ordinal < 0) {
        return false;
    }
    peer = (struct spw_peer){context_on(to_ordinal, info), context_on(from_ordinal, info)};
    if (peer.to == NULL || peer.from == NULL) {
        return false;
    }
    *ret_peer = peer;
    return true;
}
