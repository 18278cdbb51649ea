/* Peer access between devices. */
#include <stddef.h>

#include "sim/runtime/entry.h"

SIMRT_API(cudaDeviceEnablePeerAccess, SIMRT_CONTEXT, (int peer, unsigned int flags), (peer, flags))
{
    CUcontext context;
    cudaError_t error = simrt_context_primary(peer, &context);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuCtxEnablePeerAccess(context, flags));
}

SIMRT_API(cudaDeviceDisablePeerAccess, SIMRT_CONTEXT, (int peer), (peer))
{
    CUcontext context;
    cudaError_t error = simrt_context_primary(peer, &context);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuCtxDisablePeerAccess(context));
}
