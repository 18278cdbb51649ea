/* Executable graphs: copies of graphs, which can be launched. The nodes of a launch run one after
 * the other in the stream, in an order that the edges allow. */
#include <stdlib.h>
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/api/graph_node.h"
#include "sim/driver/core/budget.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/graph/graph.h"
#include "sim/driver/graph/graph_memory.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/graph/submit.h"

/* Device memory that an executable graph takes: NODE_BYTES a node, rounded up to EXEC_PIECE. cuda.h
 * does not define it. */
#define NODE_BYTES ((size_t)4 << 10)
#define EXEC_PIECE ((size_t)64 << 10)

#define EXEC_FLAGS                                                                                 \
    (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |        \
     CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

struct sim_exec {
    struct sim_exec *next; /* list of all */
    CUgraphExec handle;
    unsigned int refs; /* the handle, and each launch in progress */
    struct sim_graph *graph;
    unsigned long long source; /* id of the original graph */
    unsigned long long flags;
    struct sim_device *device;
    size_t bytes;           /* of device memory, charged */
    struct sim_fences last; /* fences of the latest launch */
};

static struct sim_exec *execs;

static void exec_unref(struct sim_exec *exec)
{
    struct sim_exec **place = &execs;

    if (--exec->refs > 0) {
        return;
    }
    while (*place != exec) {
        place = &(*place)->next;
    }
    *place = exec->next;
    sim_budget_refund(exec->device, exec->bytes, SIM_USE_OWN);
    sim_fences_fini(&exec->last);
    sim_graph_unref(exec->graph);
    free(exec);
}

static struct sim_exec *exec_of(CUgraphExec handle)
{
    return sim_handle_object(SIM_HANDLE_EXEC, handle);
}

/* Checks the graph for cycles and copies it. The program does not get the copy's handle. */
static CUresult clone_graph(const struct sim_graph *graph, struct sim_graph **ret_clone)
{
    struct sim_node **order;
    CUresult result = sim_graph_order(graph, &order);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    free(order);
    return sim_graph_clone(graph, true, ret_clone);
}

/* cuda.h: a graph with allocation or free nodes has at most one executable graph. */
static bool may_be_instantiated(const struct sim_graph *graph)
{
    if (graph->is_captured_into) {
        return false;
    }
    if (!sim_graph_has_memory_nodes(graph)) {
        return true;
    }
    for (const struct sim_exec *exec = execs; exec != NULL; exec = exec->next) {
        if (exec->source == graph->id && exec->handle != NULL) {
            return false;
        }
    }
    return true;
}

static CUresult exec_new(const struct sim_graph *graph, CUcontext ctx, unsigned long long flags,
                         struct sim_exec **ret_exec)
{
    struct sim_exec *exec = calloc(1, sizeof(*exec));
    CUresult result;

    if (exec == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->device = ctx->device;
    exec->bytes = sim_graph_node_count(graph) * NODE_BYTES + EXEC_PIECE - 1;
    exec->bytes -= exec->bytes % EXEC_PIECE;
    result = sim_budget_charge(exec->device, exec->bytes, SIM_USE_OWN);
    if (result != CUDA_SUCCESS) {
        goto err_free;
    }
    result = clone_graph(graph, &exec->graph);
    if (result != CUDA_SUCCESS) {
        goto err_refund;
    }
    exec->handle = sim_handle_create(SIM_HANDLE_EXEC, exec);
    if (exec->handle == NULL) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
        goto err_clone;
    }
    exec->refs = 1;
    exec->source = graph->id;
    exec->flags = flags;
    exec->next = execs;
    execs = exec;
    *ret_exec = exec;
    return CUDA_SUCCESS;

err_clone:
    sim_graph_unref(exec->graph);
err_refund:
    sim_budget_refund(exec->device, exec->bytes, SIM_USE_OWN);
err_free:
    free(exec);
    return result;
}

/* cuda.h: device launch and automatic free exclude each other. */
static bool are_valid(unsigned long long flags)
{
    const unsigned long long opposed =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;

    return (flags & ~(unsigned long long)EXEC_FLAGS) == 0 && (flags & opposed) != opposed;
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph hGraph, unsigned long long flags)
{
    const struct sim_graph *graph = sim_graph_of(hGraph);
    struct sim_exec *exec;
    CUresult result = sim_capture_unsafe();

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (ret_exec == NULL || graph == NULL || !are_valid(flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!may_be_instantiated(graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    result = exec_new(graph, sim_ctx_current(), flags, &exec);
    if (result == CUDA_SUCCESS) {
        *ret_exec = exec->handle;
    }
    return result;
}

SIM_API(cuGraphInstantiate, SIM_CONTEXT,
        (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
         size_t bufferSize))
{
    if (phErrorNode != NULL) {
        *phErrorNode = NULL;
    }
    if (logBuffer != NULL && bufferSize > 0) {
        logBuffer[0] = '\0';
    }
    return instantiate(phGraphExec, hGraph, 0);
}

SIM_API_SAME(cuGraphInstantiate_v2, cuGraphInstantiate);

SIM_API(cuGraphInstantiateWithFlags, SIM_CONTEXT,
        (CUgraphExec * phGraphExec, CUgraph hGraph, unsigned long long flags))
{
    return instantiate(phGraphExec, hGraph, flags);
}

/* An upload has no effect, but is ordered like a launch. */
static CUresult upload(bool ptsz, struct sim_exec *exec, CUstream hStream)
{
    struct sim_stream *stream;
    struct sim_op *op;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_admit(stream);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (sim_stream_is_capturing(stream)) {
        return sim_capture_refuse(stream);
    }
    op = sim_op_new_empty(exec->device->ordinal);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = sim_schedule_submit(stream, op, &exec->last);
    sim_op_unref(op);
    return result;
}

SIM_API_PTSZ(cuGraphInstantiateWithParams, SIM_CONTEXT,
             (CUgraphExec * phGraphExec, CUgraph hGraph,
              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams))
{
    CUresult result;

    if (instantiateParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    instantiateParams->hErrNode_out = NULL;
    result = instantiate(phGraphExec, hGraph, instantiateParams->flags);
    instantiateParams->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    if (result == CUDA_SUCCESS &&
        (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
        result = upload(ptsz, exec_of(*phGraphExec), instantiateParams->hUploadStream);
    }
    return result;
}

SIM_API_PTSZ(cuGraphUpload, SIM_CONTEXT, (CUgraphExec hGraphExec, CUstream hStream))
{
    struct sim_exec *exec = exec_of(hGraphExec);

    return exec == NULL ? CUDA_ERROR_INVALID_VALUE : upload(ptsz, exec, hStream);
}

/* A captured launch becomes a node with a copy of the graph. */
static CUresult capture_launch(struct sim_stream *stream, const struct sim_exec *exec)
{
    struct sim_graph *clone;
    CUresult result = sim_graph_clone(exec->graph, false, &clone);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_submit_new(stream, sim_child_op_new(clone));
    sim_graph_unref(clone);
    return result;
}

static void launch_done(void *arg)
{
    exec_unref(arg);
}

/* Submits an operation that waits for the fences; drops the caller's reference to the operation. */
static CUresult submit_op(struct sim_stream *stream, struct sim_op *op,
                          const struct sim_fences *after)
{
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (op != NULL) {
        result = sim_schedule_submit(stream, op, after);
        sim_op_unref(op);
    }
    return result;
}

/* Launches of one executable graph run one after the other. Each launch holds a reference to the
 * graph until its last node is done, so the program may destroy the graph earlier. */
static CUresult launch_nodes(struct sim_stream *stream, struct sim_exec *exec)
{
    int device = exec->device->ordinal;
    CUresult result = CUDA_SUCCESS;

    if (!sim_fences_prune(&exec->last)) {
        result = submit_op(stream, sim_op_new_empty(device), &exec->last);
    }
    if (result == CUDA_SUCCESS) {
        result = sim_graph_launch_nodes(exec->graph, stream);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    exec->refs++;
    result = submit_op(stream, sim_op_new_call(device, launch_done, exec), NULL);
    if (result != CUDA_SUCCESS) {
        exec_unref(exec);
        return result;
    }
    sim_fences_fini(&exec->last);
    return sim_fences_add(&exec->last, stream, stream->submitted);
}

SIM_API_PTSZ(cuGraphLaunch, SIM_CONTEXT, (CUgraphExec hGraphExec, CUstream hStream))
{
    struct sim_exec *exec = exec_of(hGraphExec);
    struct sim_stream *stream;
    CUresult result = sim_stream_resolve(hStream, ptsz, &stream);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_admit(stream);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_stream_is_capturing(stream)) {
        return capture_launch(stream, exec);
    }
    if ((exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) {
        sim_graph_free_live_memory(exec->graph);
    } else if (sim_graph_has_live_memory(exec->graph)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return launch_nodes(stream, exec);
}

SIM_API(cuGraphExecDestroy, SIM_INITIALIZED, (CUgraphExec hGraphExec))
{
    struct sim_exec *exec = exec_of(hGraphExec);

    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_handle_destroy(SIM_HANDLE_EXEC, exec->handle);
    exec->handle = NULL;
    exec_unref(exec);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecGetFlags, SIM_INITIALIZED, (CUgraphExec hGraphExec, cuuint64_t *flags))
{
    const struct sim_exec *exec = exec_of(hGraphExec);

    if (exec == NULL || flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

/* The executable graph's copy of a node. */
static struct sim_node *counterpart(CUgraphExec hGraphExec, CUgraphNode hNode)
{
    const struct sim_exec *exec = exec_of(hGraphExec);
    const struct sim_node *node = sim_node_of(hNode);

    if (exec == NULL || node == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < exec->graph->count; i++) {
        if (exec->graph->nodes[i]->origin == node->id) {
            return exec->graph->nodes[i];
        }
    }
    return NULL;
}

SIM_API(cuGraphExecNodeSetParams, SIM_HEALTHY,
        (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams))
{
    struct sim_node *node = counterpart(hGraphExec, hNode);

    return node == NULL ? CUDA_ERROR_INVALID_VALUE : sim_node_set_params(node, nodeParams);
}

SIM_API(cuGraphExecKernelNodeSetParams, SIM_HEALTHY,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams))
{
    return sim_node_replace(
        counterpart(hGraphExec, hNode),
        sim_params_of(CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

SIM_API(cuGraphExecKernelNodeSetParams_v2, SIM_HEALTHY,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams))
{
    return sim_node_replace(
        counterpart(hGraphExec, hNode),
        sim_params_of(CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams)));
}

SIM_API(cuGraphExecMemcpyNodeSetParams, SIM_HEALTHY,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx))
{
    return sim_node_replace(counterpart(hGraphExec, hNode), sim_params_of_memcpy(copyParams, ctx));
}

SIM_API(cuGraphExecMemsetNodeSetParams, SIM_HEALTHY,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
         CUcontext ctx))
{
    return sim_node_replace(counterpart(hGraphExec, hNode),
                            sim_params_of_memset(memsetParams, ctx));
}

SIM_API(cuGraphExecHostNodeSetParams, SIM_HEALTHY,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams))
{
    return sim_node_replace(
        counterpart(hGraphExec, hNode),
        sim_params_of(CU_GRAPH_NODE_TYPE_HOST, nodeParams, sizeof(*nodeParams)));
}

SIM_API(cuGraphExecEventRecordNodeSetEvent, SIM_HEALTHY,
        (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event))
{
    return sim_node_replace(counterpart(hGraphExec, hNode),
                            sim_params_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event, sizeof(event)));
}

SIM_API(cuGraphExecEventWaitNodeSetEvent, SIM_HEALTHY,
        (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event))
{
    return sim_node_replace(counterpart(hGraphExec, hNode),
                            sim_params_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, sizeof(event)));
}

/* cuda.h: only kernel, memset and memcpy nodes can be disabled. */
static bool can_be_disabled(const struct sim_node *node)
{
    CUgraphNodeType type = node->op->class->node_type;

    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMSET ||
           type == CU_GRAPH_NODE_TYPE_MEMCPY;
}

SIM_API(cuGraphNodeSetEnabled, SIM_INITIALIZED,
        (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled))
{
    struct sim_node *node = counterpart(hGraphExec, hNode);

    if (node == NULL || !can_be_disabled(node)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    node->disabled = isEnabled == 0;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphNodeGetEnabled, SIM_INITIALIZED,
        (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled))
{
    const struct sim_node *node = counterpart(hGraphExec, hNode);

    if (node == NULL || isEnabled == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *isEnabled = !node->disabled;
    return CUDA_SUCCESS;
}

/* True if the dependencies of both nodes have the same indices in their graphs. */
static bool has_same_edges(const struct sim_node *a, const struct sim_node *b)
{
    if (a->after_count != b->after_count) {
        return false;
    }
    for (size_t i = 0; i < a->after_count; i++) {
        if (a->after[i]->place != b->after[i]->place) {
            return false;
        }
    }
    return true;
}

/* Compares the graphs node by node, in order of creation. */
static CUgraphExecUpdateResult compare(const struct sim_graph *old, const struct sim_graph *new,
                                       CUgraphNode *ret_node)
{
    *ret_node = NULL;
    if (old->count != new->count) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    for (size_t i = 0; i < old->count; i++) {
        const struct sim_node *a = old->nodes[i];
        const struct sim_node *b = new->nodes[i];

        *ret_node = b->handle;
        if (a->op->class->node_type != b->op->class->node_type) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        }
        if (!has_same_edges(a, b)) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        }
        if (a->op != b->op && (sim_op_is_graph_memory(a->op) || sim_op_is_child(a->op))) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
        }
    }
    *ret_node = NULL;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update(CUgraphExec hGraphExec, CUgraph hGraph,
                       CUgraphExecUpdateResultInfo *ret_info)
{
    const struct sim_exec *exec = exec_of(hGraphExec);
    const struct sim_graph *graph = sim_graph_of(hGraph);

    if (exec == NULL || graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    ret_info->errorFromNode = NULL;
    ret_info->result = compare(exec->graph, graph, &ret_info->errorNode);
    if (ret_info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (size_t i = 0; i < graph->count; i++) {
        sim_node_set_op(exec->graph->nodes[i], graph->nodes[i]->op);
    }
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecUpdate_v2, SIM_INITIALIZED,
        (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo))
{
    return resultInfo == NULL ? CUDA_ERROR_INVALID_VALUE : update(hGraphExec, hGraph, resultInfo);
}

SIM_API(cuGraphExecUpdate, SIM_INITIALIZED,
        (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
         CUgraphExecUpdateResult *updateResult_out))
{
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUresult result = update(hGraphExec, hGraph, &info);

    if (hErrorNode_out != NULL) {
        *hErrorNode_out = info.errorNode;
    }
    if (updateResult_out != NULL) {
        *updateResult_out = info.result;
    }
    return result;
}
