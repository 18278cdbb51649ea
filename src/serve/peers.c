/* Memory that peer devices and other hardware access. */
#include "device/access.h"
#include "device/spill.h"
#include "program/stream.h"
#include "serve/handlers.h"
#include "serve/immovable.h"

/* Gives the current context access to the memory of `peer`, or ends that access. The driver changes
 * the access only to its own allocations. A block of a pool is mapped memory, which needs explicit
 * access. */
static CUresult share(CUcontext peer, bool enabled)
{
    const struct spw_stream_info *here = spw_program_stream_current();
    int accessor = here == NULL ? -1 : here->ordinal;
    CUcontext context = here == NULL ? NULL : here->stream.context;
    int owner = spw_program_stream_ordinal(peer);

    if (accessor < 0 || owner < 0 || accessor == owner) {
        return CUDA_SUCCESS;
    }
    return enabled ? spw_device_access_enable(spw_device_at(owner), peer, accessor, context)
                   : spw_device_access_disable(spw_device_at(owner), peer, accessor, context);
}

CUresult spw_serve_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    CUresult result;

    SPW_FORWARD(result, spw_process_driver()->cuCtxEnablePeerAccess(peerContext, Flags));
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = share(peerContext, /* enabled */ true);
    if (result != CUDA_SUCCESS) {
        /* The call is undone, so that the program may try again. */
        (void)spw_process_driver()->cuCtxDisablePeerAccess(peerContext);
    }
    return result;
}

CUresult spw_serve_cuCtxDisablePeerAccess(CUcontext peerContext)
{
    CUresult result = spw_process_driver()->cuCtxDisablePeerAccess(peerContext);

    return result == CUDA_SUCCESS ? share(peerContext, /* enabled */ false) : result;
}

/* ---- memory that must stay in place ---- */

/* Libraries set this attribute before they register memory for direct access by a network card. */
CUresult spw_serve_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                         CUdeviceptr ptr)
{
    if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && value != NULL &&
        *(const unsigned int *)value != 0) {
        spw_serve_immovable_mark(ptr, 1);
    }
    return spw_process_driver()->cuPointerSetAttribute(value, attribute, ptr);
}

/* NCCL binds its registered buffers to a multicast object, which the switch uses for reductions. */
CUresult spw_serve_cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                       CUdeviceptr memptr, size_t size, unsigned long long flags)
{
    spw_serve_immovable_mark(memptr, size);
    return spw_process_driver()->cuMulticastBindAddr(mcHandle, mcOffset, memptr, size, flags);
}
