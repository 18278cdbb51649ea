/* Streams: destroying them, and finding their devices. */
#include <stddef.h>

#include "sim/runtime/entry.h"

SIMRT_API(cudaStreamDestroy, SIMRT_CONTEXT, (cudaStream_t stream))
{
    /* The default stream cannot be destroyed. */
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    return simrt_error(simrt_driver.cuStreamDestroy(stream));
}

SIMRT_API_PTSZ(cudaStreamGetDevice, SIMRT_CONTEXT, (cudaStream_t stream, int *ret_ordinal))
{
    CUdevice device;
    CUdevice candidate;

    if (ret_ordinal == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = simrt_driver.cuStreamGetDevice[ptsz](stream, &device);
    for (int i = 0; result == CUDA_SUCCESS && i < simrt_device_count(); i++) {
        if (simrt_device_handle(i, &candidate) == cudaSuccess && candidate == device) {
            *ret_ordinal = i;
            return cudaSuccess;
        }
    }
    return result != CUDA_SUCCESS ? simrt_error(result) : cudaErrorInvalidDevice;
}
