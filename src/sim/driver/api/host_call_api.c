/* Host functions in a stream: cuLaunchHostFunc, cuStreamAddCallback. */
#include "sim/driver/api/entry.h"
#include "sim/driver/exec/host_call.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"

SIM_API_PTSZ(cuLaunchHostFunc, SIM_CONTEXT, (CUstream hStream, CUhostFn fn, void *userData))
{
    struct sim_stream *stream;
    struct sim_op *op;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result == CUDA_SUCCESS) {
        result = sim_host_op_new(fn, userData, sim_stream_device(stream), &op);
    }
    return result == CUDA_SUCCESS ? sim_submit_new(stream, op) : result;
}

SIM_API_PTSZ(cuStreamAddCallback, SIM_CONTEXT,
             (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags))
{
    struct sim_stream *stream;
    struct sim_op *op;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (callback == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_stream_is_capturing(stream)) {
        return sim_capture_refuse(stream);
    }
    result =
        sim_stream_callback_op_new(callback, hStream, userData, sim_stream_device(stream), &op);
    return result == CUDA_SUCCESS ? sim_submit_new(stream, op) : result;
}
