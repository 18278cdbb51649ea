/* Exported functions that get and set the parameters of graph nodes. */
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/api/graph_node.h"
#include "sim/driver/exec/copy.h"
#include "sim/driver/exec/event.h"
#include "sim/driver/exec/host_call.h"
#include "sim/driver/exec/memset.h"
#include "sim/driver/graph/graph_memory.h"
#include "sim/driver/kernels/kernel_launch.h"

/* The operation of a node of that kind, or NULL. */
static struct sim_op *op_of(CUgraphNode handle, CUgraphNodeType type)
{
    struct sim_node *node = sim_node_of(handle);

    return node == NULL || node->op->class->node_type != type ? NULL : node->op;
}

SIM_API(cuGraphKernelNodeGetParams, SIM_HEALTHY,
        (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams))
{
    const struct sim_op *op = op_of(hNode, CU_GRAPH_NODE_TYPE_KERNEL);

    if (op == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(nodeParams, sim_launch_of_op(op), sizeof(*nodeParams));
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeGetParams_v2, SIM_HEALTHY,
        (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams))
{
    const struct sim_op *op = op_of(hNode, CU_GRAPH_NODE_TYPE_KERNEL);

    if (op == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *nodeParams = *sim_launch_of_op(op);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeSetParams, SIM_HEALTHY,
        (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams))
{
    return sim_node_replace(sim_node_of(hNode), sim_params_of(CU_GRAPH_NODE_TYPE_KERNEL, nodeParams,
                                                              sizeof(*nodeParams)));
}

SIM_API(cuGraphKernelNodeSetParams_v2, SIM_HEALTHY,
        (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams))
{
    return sim_node_replace(sim_node_of(hNode), sim_params_of(CU_GRAPH_NODE_TYPE_KERNEL, nodeParams,
                                                              sizeof(*nodeParams)));
}

/* Returns any copy as a three-dimensional copy between unified addresses. */
SIM_API(cuGraphMemcpyNodeGetParams, SIM_HEALTHY, (CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams))
{
    const struct sim_op *op = op_of(hNode, CU_GRAPH_NODE_TYPE_MEMCPY);
    const struct sim_copy *copy;

    if (op == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    copy = sim_copy_of_op(op);
    *nodeParams = (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = copy->src.address,
        .srcPitch = copy->src.pitch,
        .srcHeight = copy->src.pitch == 0 ? 0 : copy->src.slice / copy->src.pitch,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = copy->dst.address,
        .dstPitch = copy->dst.pitch,
        .dstHeight = copy->dst.pitch == 0 ? 0 : copy->dst.slice / copy->dst.pitch,
        .WidthInBytes = copy->width,
        .Height = copy->height,
        .Depth = copy->depth,
    };
    return CUDA_SUCCESS;
}

SIM_API(cuGraphMemcpyNodeSetParams, SIM_HEALTHY,
        (CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams))
{
    return sim_node_replace(sim_node_of(hNode), sim_params_of_memcpy(nodeParams, NULL));
}

SIM_API(cuGraphMemsetNodeGetParams, SIM_HEALTHY,
        (CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams))
{
    const struct sim_op *op = op_of(hNode, CU_GRAPH_NODE_TYPE_MEMSET);

    if (op == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *nodeParams = *sim_memset_of_op(op);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphMemsetNodeSetParams, SIM_HEALTHY,
        (CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams))
{
    return sim_node_replace(sim_node_of(hNode), sim_params_of_memset(nodeParams, NULL));
}

SIM_API(cuGraphHostNodeGetParams, SIM_HEALTHY,
        (CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams))
{
    const struct sim_op *op = op_of(hNode, CU_GRAPH_NODE_TYPE_HOST);

    if (op == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_host_op_params(op, nodeParams);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphHostNodeSetParams, SIM_HEALTHY,
        (CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams))
{
    return sim_node_replace(sim_node_of(hNode), sim_params_of(CU_GRAPH_NODE_TYPE_HOST, nodeParams,
                                                              sizeof(*nodeParams)));
}

SIM_API(cuGraphChildGraphNodeGetGraph, SIM_INITIALIZED, (CUgraphNode hNode, CUgraph *phGraph))
{
    const struct sim_op *op = op_of(hNode, CU_GRAPH_NODE_TYPE_GRAPH);

    if (op == NULL || phGraph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *phGraph = sim_child_op_graph(op)->handle;
    return CUDA_SUCCESS;
}

static CUresult get_event(CUgraphNode hNode, CUgraphNodeType type, CUevent *ret_event)
{
    const struct sim_op *op = op_of(hNode, type);

    if (op == NULL || ret_event == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_event = sim_event_of_op(op)->handle;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphEventRecordNodeGetEvent, SIM_INITIALIZED, (CUgraphNode hNode, CUevent *event_out))
{
    return get_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}

SIM_API(cuGraphEventWaitNodeGetEvent, SIM_INITIALIZED, (CUgraphNode hNode, CUevent *event_out))
{
    return get_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}

SIM_API(cuGraphEventRecordNodeSetEvent, SIM_HEALTHY, (CUgraphNode hNode, CUevent event))
{
    return sim_node_replace(sim_node_of(hNode),
                            sim_params_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event, sizeof(event)));
}

SIM_API(cuGraphEventWaitNodeSetEvent, SIM_HEALTHY, (CUgraphNode hNode, CUevent event))
{
    return sim_node_replace(sim_node_of(hNode),
                            sim_params_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, sizeof(event)));
}

SIM_API(cuGraphMemAllocNodeGetParams, SIM_INITIALIZED,
        (CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out))
{
    const struct sim_op *op = op_of(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC);

    if (op == NULL || params_out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *params_out = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .poolProps.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = op->device},
        .bytesize = sim_graph_memory_size(op),
        .dptr = sim_graph_memory_address(op),
    };
    return CUDA_SUCCESS;
}

SIM_API(cuGraphMemFreeNodeGetParams, SIM_INITIALIZED, (CUgraphNode hNode, CUdeviceptr *dptr_out))
{
    const struct sim_op *op = op_of(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE);

    if (op == NULL || dptr_out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *dptr_out = sim_graph_memory_address(op);
    return CUDA_SUCCESS;
}
