/* Peers and other processes. */
#include "common/log.h"
#include "track/device.h"
#include "intercept/entry.h"
#include "intercept/registered.h"
#include "track/stream.h"

/* The current device is let reach the memory of the device of `peer`, or not any more. The driver
 * does it for its own allocations; a block is mapped memory, to which access is given explicitly.
 */
static CUresult share(CUcontext peer, CUmemAccess_flags access)
{
    const struct spw_stream_info *here = spw_track_stream_current();
    int accessor = here == NULL ? -1 : here->ordinal;
    int owner = spw_track_stream_ordinal(peer);

    if (accessor < 0 || owner < 0 || accessor == owner) {
        return CUDA_SUCCESS;
    }
    return spw_track_device_grant(&spw_process.devices[owner], accessor, access);
}

CUresult spw_serve_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    CUresult result;

    SPW_FORWARD(result, spw_track_driver()->cuCtxEnablePeerAccess(peerContext, Flags));
    return result == CUDA_SUCCESS ? share(peerContext, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) : result;
}

CUresult spw_serve_cuCtxDisablePeerAccess(CUcontext peerContext)
{
    CUresult result = spw_track_driver()->cuCtxDisablePeerAccess(peerContext);

    return result == CUDA_SUCCESS ? share(peerContext, CU_MEM_ACCESS_FLAGS_PROT_NONE) : result;
}

/* A handle would be of a chunk, with the size of the block: the other process would map foreign
 * memory. */
CUresult spw_serve_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    struct spw_pool *pool;

    if (spw_track_device_owner(dptr, &pool) == NULL) {
        return spw_track_driver()->cuIpcGetMemHandle(pHandle, dptr);
    }
    if (!atomic_flag_test_and_set(&told)) {
        spw_log_always("memory of the pool cannot be shared with other processes by CUDA IPC; "
                       "SPILLWAY_MODE=observe leaves it to the driver, which can");
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- memory that others get hold of ---- */

/* Whoever registers memory for direct access of a network card asks for this first. */
CUresult spw_serve_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                         CUdeviceptr ptr)
{
    if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && value != NULL &&
        *(const unsigned int *)value != 0) {
        spw_intercept_registered_fix(ptr, 1);
    }
    return spw_track_driver()->cuPointerSetAttribute(value, attribute, ptr);
}

/* NCCL's registered buffers, where the switch adds up. */
CUresult spw_serve_cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                       CUdeviceptr memptr, size_t size, unsigned long long flags)
{
    spw_intercept_registered_fix(memptr, size);
    return spw_track_driver()->cuMulticastBindAddr(mcHandle, mcOffset, memptr, size, flags);
}
