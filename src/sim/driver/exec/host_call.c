#include "sim/driver/exec/host_call.h"

#include "sim/driver/core/context.h"
#include "sim/driver/exec/callback.h"
#include "sim/driver/exec/callback_thread.h"
#include "sim/driver/exec/schedule.h"

struct host_op {
    struct sim_op op;
    CUhostFn fn;
    CUstreamCallback stream_fn; /* instead of fn */
    CUstream stream;            /* the handle that the program used */
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

/* Runs even if the context has failed; the callback then gets the error. */
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

CUresult sim_stream_callback_op_new(CUstreamCallback fn, CUstream stream, void *data, int device,
                                    struct sim_op **ret_op)
{
    CUresult result = sim_callback_start();
    struct host_op *host;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    host = sim_op_new(&callback_class, sizeof(*host), device);
    if (host == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    host->stream_fn = fn;
    host->stream = stream;
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
