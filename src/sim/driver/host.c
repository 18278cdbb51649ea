/* Host functions in a stream: cuLaunchHostFunc, cuStreamAddCallback. */
#include "sim/driver/host.h"

#include "sim/driver/callback.h"
#include "sim/driver/capture.h"
#include "sim/driver/entry.h"
#include "sim/driver/schedule.h"
#include "sim/driver/submit.h"

struct host_op {
    struct sim_op op;
    CUhostFn fn;
    CUstreamCallback stream_fn; /* instead of fn */
    CUstream stream;            /* what the program called the stream */
    void *data;
};

static enum sim_outcome host_run(struct sim_op *op, struct sim_item *item)
{
    const struct host_op *host = (const struct host_op *)op;

    if (item->state == NULL) {
        item->state = host->stream_fn != NULL
                          ? sim_callback_post_stream(host->stream_fn, host->stream,
                                                     item->stream->ctx->sticky, host->data)
                          : sim_callback_post(host->fn, host->data);
    }
    return item->state != NULL && sim_call_is_done(item->state) ? SIM_DONE : SIM_BLOCKED;
}

static void host_release(struct sim_item *item)
{
    sim_call_unref(item->state);
}

static const struct sim_op_class host_class = {
    .name = "host",
    .node_type = CU_GRAPH_NODE_TYPE_HOST,
    .run = host_run,
    .release = host_release,
};

/* Called even when the context has failed, with the error. */
static const struct sim_op_class callback_class = {
    .name = "callback",
    .node_type = CU_GRAPH_NODE_TYPE_HOST,
    .always = true,
    .run = host_run,
    .release = host_release,
};

CUresult sim_host_op_new(CUhostFn fn, void *data, int device, struct sim_op **ret_op)
{
    CUresult result = sim_callback_start();
    struct host_op *host;

    if (fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    host = sim_op_new(&host_class, sizeof(*host), device);
    if (host == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    host->fn = fn;
    host->data = data;
    *ret_op = &host->op;
    return CUDA_SUCCESS;
}

void sim_host_op_params(const struct sim_op *op, CUDA_HOST_NODE_PARAMS *ret_params)
{
    const struct host_op *host = (const struct host_op *)op;

    ret_params->fn = host->fn;
    ret_params->userData = host->data;
}

SIM_API_PTSZ(cuLaunchHostFunc, SIM_CONTEXT, (CUstream hStream, CUhostFn fn, void *userData),
             (hStream, fn, userData))
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
             (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
             (hStream, callback, userData, flags))
{
    struct sim_stream *stream;
    struct host_op *host;
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
    result = sim_callback_start();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    host = sim_op_new(&callback_class, sizeof(*host), sim_stream_device(stream));
    if (host == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    host->stream_fn = callback;
    host->stream = hStream;
    host->data = userData;
    return sim_submit_new(stream, &host->op);
}
