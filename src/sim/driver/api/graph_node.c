#include "sim/driver/api/graph_node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/context.h"
#include "sim/driver/exec/copy.h"
#include "sim/driver/exec/event.h"
#include "sim/driver/exec/host_call.h"
#include "sim/driver/exec/memset.h"
#include "sim/driver/graph/graph_memory.h"
#include "sim/driver/kernels/kernel_launch.h"

/* The context of a node: `given` or, if `given` is NULL, the current context. */
static CUresult node_context(CUcontext given, CUcontext *ret_ctx)
{
    if (given == NULL) {
        return sim_ctx_require(ret_ctx);
    }
    if (!sim_ctx_is_live(given)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *ret_ctx = given;
    return CUDA_SUCCESS;
}

static CUresult kernel_op(const CUgraphNodeParams *params, CUcontext ctx, struct sim_op **ret_op)
{
    CUDA_KERNEL_NODE_PARAMS kernel;

    static_assert(sizeof(kernel) == sizeof(params->kernel), "the same structure twice");
    memcpy(&kernel, &params->kernel, sizeof(kernel));
    return sim_launch_op_new(&kernel, ctx, false, ret_op);
}

static CUresult memcpy_op(const CUgraphNodeParams *params, CUcontext ctx, struct sim_op **ret_op)
{
    struct sim_copy copy;
    CUresult result = sim_copy_from_3d(&params->memcpy.copyParams, &copy);

    if (result == CUDA_SUCCESS && (copy.width == 0 || copy.height == 0 || copy.depth == 0)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    return result == CUDA_SUCCESS ? sim_copy_op_new(&copy, ctx->device->ordinal, ret_op) : result;
}

static CUresult memset_op(const CUgraphNodeParams *params, CUcontext ctx, struct sim_op **ret_op)
{
    CUDA_MEMSET_NODE_PARAMS memset_params = {
        .dst = params->memset.dst,
        .pitch = params->memset.pitch,
        .value = params->memset.value,
        .elementSize = params->memset.elementSize,
        .width = params->memset.width,
        .height = params->memset.height,
    };

    if (memset_params.width == 0 || memset_params.height == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_memset_op_new(&memset_params, ctx->device->ordinal, ret_op);
}

static CUresult child_op(CUgraphNodeParams *params, struct sim_op **ret_op)
{
    struct sim_graph *graph = sim_graph_of(params->graph.graph);
    struct sim_graph *clone;
    CUresult result;

    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
#if CUDA_VERSION >= 12090
    if (params->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
#endif
    result = sim_graph_clone(graph, false, &clone);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *ret_op = sim_child_op_new(clone);
    params->graph.graph = clone->handle;
    sim_graph_unref(clone);
    return *ret_op == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult event_op(CUevent handle, int device, bool records, struct sim_op **ret_op)
{
    struct sim_event *event;
    CUresult result = sim_event_resolve(handle, &event);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    *ret_op =
        records ? sim_event_record_op_new(event, device) : sim_event_wait_op_new(event, device);
    return *ret_op == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult alloc_op(CUgraphNodeParams *params, struct sim_op **ret_op)
{
    struct sim_device *device = sim_device_get(params->alloc.poolProps.location.id);

    if (params->alloc.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE || device == NULL ||
        params->alloc.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        params->alloc.bytesize == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_graph_alloc_op_new(device, params->alloc.bytesize, ret_op, &params->alloc.dptr);
}

/* The operations of kinds that need a context. */
static CUresult context_op(CUgraphNodeParams *params, struct sim_op **ret_op)
{
    CUcontext given = NULL;
    CUcontext ctx;
    CUresult result;

    if (params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        given = params->kernel.ctx;
        result = sim_function_ctx(params->kernel.func, &given);
    } else {
        given = params->type == CU_GRAPH_NODE_TYPE_MEMCPY   ? params->memcpy.copyCtx
                : params->type == CU_GRAPH_NODE_TYPE_MEMSET ? params->memset.ctx
                                                            : NULL;
        result = CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS) {
        result = node_context(given, &ctx);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_op(params, ctx, ret_op);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return memcpy_op(params, ctx, ret_op);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return memset_op(params, ctx, ret_op);
    case CU_GRAPH_NODE_TYPE_HOST:
        return sim_host_op_new(params->host.fn, params->host.userData, ctx->device->ordinal,
                               ret_op);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return event_op(params->eventWait.event, ctx->device->ordinal, false, ret_op);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_op(params->eventRecord.event, ctx->device->ordinal, true, ret_op);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_node_op_new(CUgraphNodeParams *params, struct sim_op **ret_op)
{
    if (params == NULL || params->type == SIM_NODE_NONE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *ret_op = sim_op_new_empty(0);
        return *ret_op == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return child_op(params, ret_op);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return alloc_op(params, ret_op);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return sim_graph_free_op_new(params->free.dptr, ret_op);
    default:
        return context_op(params, ret_op);
    }
}

CUresult sim_node_set_params(struct sim_node *node, CUgraphNodeParams *params)
{
    struct sim_op *op;
    CUresult result;

    if (params == NULL || node->op->class->node_type != params->type ||
        sim_op_is_graph_memory(node->op)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_node_op_new(params, &op);
    if (result == CUDA_SUCCESS) {
        sim_node_set_op(node, op);
        sim_op_unref(op);
    }
    return result;
}

CUresult sim_node_replace(struct sim_node *node, CUgraphNodeParams params)
{
    return node == NULL ? CUDA_ERROR_INVALID_VALUE : sim_node_set_params(node, &params);
}

CUgraphNodeParams sim_params_of(CUgraphNodeType type, const void *given, size_t size)
{
    CUgraphNodeParams params = {.type = given == NULL ? SIM_NODE_NONE : type};

    if (given != NULL) {
        memcpy(params.reserved1, given, size);
    }
    return params;
}

CUgraphNodeParams sim_params_of_memset(const CUDA_MEMSET_NODE_PARAMS *given, CUcontext ctx)
{
    CUgraphNodeParams params = sim_params_of(CU_GRAPH_NODE_TYPE_MEMSET, given, sizeof(*given));

    params.memset.ctx = ctx;
    return params;
}

CUgraphNodeParams sim_params_of_memcpy(const CUDA_MEMCPY3D *given, CUcontext ctx)
{
    CUDA_MEMCPY_NODE_PARAMS copy = {.copyCtx = ctx};

    if (given != NULL) {
        copy.copyParams = *given;
    }
    return sim_params_of(CU_GRAPH_NODE_TYPE_MEMCPY, given == NULL ? NULL : &copy, sizeof(copy));
}

/* Adds the node that *params describes; writes outputs to *params, as sim_node_op_new() does. */
static CUresult add_node(CUgraphNode *ret_node, CUgraph hGraph, const CUgraphNode *dependencies,
                         size_t count, CUgraphNodeParams *params)
{
    struct sim_graph *graph = sim_graph_of(hGraph);
    struct sim_node **after;
    struct sim_node *node;
    struct sim_op *op;
    CUresult result;

    if (graph == NULL || ret_node == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_nodes_of(dependencies, count, graph, &after);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_node_op_new(params, &op);
    if (result == CUDA_SUCCESS) {
        result = sim_graph_add(graph, op, after, count, &node);
        sim_op_unref(op);
    }
    if (result == CUDA_SUCCESS) {
        *ret_node = node->handle;
    }
    free(after);
    return result;
}

SIM_API(cuGraphAddNode, SIM_HEALTHY,
        (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
         size_t numDependencies, CUgraphNodeParams *nodeParams))
{
    return add_node(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

/* Edge data is not stored, see cuStreamGetCaptureInfo_v3. */
SIM_API(cuGraphAddNode_v2, SIM_HEALTHY,
        (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
         const CUgraphEdgeData *dependencyData, size_t numDependencies,
         CUgraphNodeParams *nodeParams))
{
    return add_node(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

SIM_API(cuGraphNodeSetParams, SIM_HEALTHY, (CUgraphNode hNode, CUgraphNodeParams *nodeParams))
{
    struct sim_node *node = sim_node_of(hNode);

    return node == NULL ? CUDA_ERROR_INVALID_VALUE : sim_node_set_params(node, nodeParams);
}

/* The place of a new node, common to all functions below. */
#define PLACE_PARAMS                                                                               \
    CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,                     \
        size_t numDependencies
#define PLACE phGraphNode, hGraph, dependencies, numDependencies

SIM_API(cuGraphAddKernelNode, SIM_HEALTHY,
        (PLACE_PARAMS, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams))
{
    CUgraphNodeParams params =
        sim_params_of(CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams));

    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddKernelNode_v2, SIM_HEALTHY,
        (PLACE_PARAMS, const CUDA_KERNEL_NODE_PARAMS *nodeParams))
{
    CUgraphNodeParams params =
        sim_params_of(CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, sizeof(*nodeParams));

    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddMemcpyNode, SIM_HEALTHY,
        (PLACE_PARAMS, const CUDA_MEMCPY3D *copyParams, CUcontext ctx))
{
    CUgraphNodeParams params = sim_params_of_memcpy(copyParams, ctx);

    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddMemsetNode, SIM_HEALTHY,
        (PLACE_PARAMS, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx))
{
    CUgraphNodeParams params = sim_params_of_memset(memsetParams, ctx);

    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddHostNode, SIM_HEALTHY, (PLACE_PARAMS, const CUDA_HOST_NODE_PARAMS *nodeParams))
{
    CUgraphNodeParams params =
        sim_params_of(CU_GRAPH_NODE_TYPE_HOST, nodeParams, sizeof(*nodeParams));

    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddChildGraphNode, SIM_HEALTHY, (PLACE_PARAMS, CUgraph childGraph))
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

    params.graph.graph = childGraph;
    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddEmptyNode, SIM_HEALTHY, (PLACE_PARAMS))
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddEventRecordNode, SIM_HEALTHY, (PLACE_PARAMS, CUevent event))
{
    CUgraphNodeParams params =
        sim_params_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event, sizeof(event));

    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddEventWaitNode, SIM_HEALTHY, (PLACE_PARAMS, CUevent event))
{
    CUgraphNodeParams params = sim_params_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, sizeof(event));

    return add_node(PLACE, &params);
}

SIM_API(cuGraphAddMemAllocNode, SIM_HEALTHY, (PLACE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams))
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUresult result;

    if (nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    params.alloc.poolProps = nodeParams->poolProps;
    params.alloc.bytesize = nodeParams->bytesize;
    result = add_node(PLACE, &params);
    if (result == CUDA_SUCCESS) {
        nodeParams->dptr = params.alloc.dptr;
    }
    return result;
}

SIM_API(cuGraphAddMemFreeNode, SIM_HEALTHY, (PLACE_PARAMS, CUdeviceptr dptr))
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};

    params.free.dptr = dptr;
    return add_node(PLACE, &params);
}

#undef PLACE_PARAMS
#undef PLACE
