/* Streams: creation, order, state, attributes and host callbacks. */
#include <stddef.h>

#include "sim/runtime/entry.h"

SIMRT_API(cudaStreamCreate, SIMRT_CONTEXT, (cudaStream_t * ret_stream), (ret_stream))
{
    return simrt_error(simrt_driver.cuStreamCreate(ret_stream, CU_STREAM_DEFAULT));
}

SIMRT_API(cudaStreamCreateWithFlags, SIMRT_CONTEXT, (cudaStream_t * ret_stream, unsigned int flags),
          (ret_stream, flags))
{
    return simrt_error(simrt_driver.cuStreamCreate(ret_stream, flags));
}

SIMRT_API(cudaStreamCreateWithPriority, SIMRT_CONTEXT,
          (cudaStream_t * ret_stream, unsigned int flags, int priority),
          (ret_stream, flags, priority))
{
    return simrt_error(simrt_driver.cuStreamCreateWithPriority(ret_stream, flags, priority));
}

SIMRT_API(cudaStreamDestroy, SIMRT_CONTEXT, (cudaStream_t stream), (stream))
{
    /* The default stream cannot be destroyed. */
    if (stream == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    return simrt_error(simrt_driver.cuStreamDestroy(stream));
}

SIMRT_API_PTSZ(cudaStreamQuery, SIMRT_CONTEXT, (cudaStream_t stream), (stream))
{
    return simrt_error(simrt_driver.cuStreamQuery[ptsz](stream));
}

SIMRT_API_PTSZ(cudaStreamSynchronize, SIMRT_CONTEXT, (cudaStream_t stream), (stream))
{
    return simrt_error(simrt_driver.cuStreamSynchronize[ptsz](stream));
}

SIMRT_API_PTSZ(cudaStreamWaitEvent, SIMRT_CONTEXT,
               (cudaStream_t stream, cudaEvent_t event, unsigned int flags), (stream, event, flags))
{
    return simrt_error(simrt_driver.cuStreamWaitEvent[ptsz](stream, event, flags));
}

SIMRT_API_PTSZ(cudaStreamAddCallback, SIMRT_CONTEXT,
               (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags),
               (stream, callback, data, flags))
{
    /* The callback types differ only in the enum of the status, whose values are the same. */
    return simrt_error(
        simrt_driver.cuStreamAddCallback[ptsz](stream, (CUstreamCallback)callback, data, flags));
}

SIMRT_API_PTSZ(cudaLaunchHostFunc, SIMRT_CONTEXT,
               (cudaStream_t stream, cudaHostFn_t function, void *data), (stream, function, data))
{
    return simrt_error(simrt_driver.cuLaunchHostFunc[ptsz](stream, function, data));
}

SIMRT_API_PTSZ(cudaStreamAttachMemAsync, SIMRT_CONTEXT,
               (cudaStream_t stream, void *address, size_t size, unsigned int flags),
               (stream, address, size, flags))
{
    return simrt_error(
        simrt_driver.cuStreamAttachMemAsync[ptsz](stream, (CUdeviceptr)address, size, flags));
}

SIMRT_API_PTSZ(cudaStreamGetPriority, SIMRT_CONTEXT, (cudaStream_t stream, int *ret_priority),
               (stream, ret_priority))
{
    return simrt_error(simrt_driver.cuStreamGetPriority[ptsz](stream, ret_priority));
}

SIMRT_API_PTSZ(cudaStreamGetFlags, SIMRT_CONTEXT, (cudaStream_t stream, unsigned int *ret_flags),
               (stream, ret_flags))
{
    return simrt_error(simrt_driver.cuStreamGetFlags[ptsz](stream, ret_flags));
}

SIMRT_API_PTSZ(cudaStreamGetId, SIMRT_CONTEXT, (cudaStream_t stream, unsigned long long *ret_id),
               (stream, ret_id))
{
    return simrt_error(simrt_driver.cuStreamGetId[ptsz](stream, ret_id));
}

SIMRT_API_PTSZ(cudaStreamGetDevice, SIMRT_CONTEXT, (cudaStream_t stream, int *ret_ordinal),
               (stream, ret_ordinal))
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

_Static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue), "attributes are the same");

SIMRT_API_PTSZ(cudaStreamCopyAttributes, SIMRT_CONTEXT, (cudaStream_t target, cudaStream_t source),
               (target, source))
{
    return simrt_error(simrt_driver.cuStreamCopyAttributes[ptsz](target, source));
}

SIMRT_API_PTSZ(cudaStreamGetAttribute, SIMRT_CONTEXT,
               (cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue *ret_value),
               (stream, attribute, ret_value))
{
    return simrt_error(simrt_driver.cuStreamGetAttribute[ptsz](stream, (CUstreamAttrID)attribute,
                                                               (CUstreamAttrValue *)ret_value));
}

SIMRT_API_PTSZ(cudaStreamSetAttribute, SIMRT_CONTEXT,
               (cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue *value),
               (stream, attribute, value))
{
    return simrt_error(simrt_driver.cuStreamSetAttribute[ptsz](stream, (CUstreamAttrID)attribute,
                                                               (const CUstreamAttrValue *)value));
}
