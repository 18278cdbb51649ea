/* CUDA graphs: blocks that an executable graph names keep their places, or come back before it is
 * launched (graph/graph.h). */
#include "device/spill.h"
#include "graph/graph.h"
#include "serve/handlers.h"

/* ---- making executable ---- */

static CUresult end(CUresult result, const CUgraphExec *executable, CUgraph graph,
                    unsigned long long flags)
{
    spw_graph_instantiate_end(result == CUDA_SUCCESS ? *executable : NULL, graph,
                              (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0);
    return result;
}

CUresult spw_serve_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    spw_graph_instantiate_begin();
    SPW_FORWARD(result, driver->cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer,
                                                   bufferSize));
    return end(result, phGraphExec, hGraph, /* flags */ 0);
}

CUresult spw_serve_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                         CUgraphNode *phErrorNode, char *logBuffer,
                                         size_t bufferSize)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    spw_graph_instantiate_begin();
    SPW_FORWARD(result, driver->cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer,
                                                      bufferSize));
    return end(result, phGraphExec, hGraph, /* flags */ 0);
}

CUresult spw_serve_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                               unsigned long long flags)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    spw_graph_instantiate_begin();
    SPW_FORWARD(result, driver->cuGraphInstantiateWithFlags(phGraphExec, hGraph, flags));
    return end(result, phGraphExec, hGraph, flags);
}

static unsigned long long flags_of(const CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return params != NULL ? params->flags : 0;
}

CUresult spw_serve_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    spw_graph_instantiate_begin();
    SPW_FORWARD(result,
                driver->cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams));
    return end(result, phGraphExec, hGraph, flags_of(instantiateParams));
}

CUresult
spw_serve_cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                            CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    spw_graph_instantiate_begin();
    SPW_FORWARD(result,
                driver->cuGraphInstantiateWithParams_ptsz(phGraphExec, hGraph, instantiateParams));
    return end(result, phGraphExec, hGraph, flags_of(instantiateParams));
}

/* ---- changing ---- */

CUresult spw_serve_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                     CUgraphNode *hErrorNode_out,
                                     CUgraphExecUpdateResult *updateResult_out)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    spw_graph_instantiate_begin();
    SPW_FORWARD(result,
                driver->cuGraphExecUpdate(hGraphExec, hGraph, hErrorNode_out, updateResult_out));
    return end(result, &hGraphExec, hGraph, /* flags */ 0);
}

CUresult spw_serve_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                        CUgraphExecUpdateResultInfo *resultInfo)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    spw_graph_instantiate_begin();
    SPW_FORWARD(result, driver->cuGraphExecUpdate_v2(hGraphExec, hGraph, resultInfo));
    return end(result, &hGraphExec, hGraph, /* flags */ 0);
}

/* Notes the change before the real call: from then on the graph may depend on the places of
 * blocks. */
CUresult spw_serve_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    spw_graph_changed(hGraphExec);
    return spw_process_driver()->cuGraphExecKernelNodeSetParams(hGraphExec, hNode, nodeParams);
}

CUresult spw_serve_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                     const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams)
{
    spw_graph_changed(hGraphExec);
    return spw_process_driver()->cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, nodeParams);
}

CUresult spw_serve_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    spw_graph_changed(hGraphExec);
    return spw_process_driver()->cuGraphExecMemcpyNodeSetParams(hGraphExec, hNode, copyParams, ctx);
}

CUresult spw_serve_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                                  CUcontext ctx)
{
    spw_graph_changed(hGraphExec);
    return spw_process_driver()->cuGraphExecMemsetNodeSetParams(hGraphExec, hNode, memsetParams,
                                                                ctx);
}

CUresult spw_serve_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                      CUgraph childGraph)
{
    spw_graph_changed(hGraphExec);
    return spw_process_driver()->cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, childGraph);
}

CUresult
spw_serve_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                             const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    spw_graph_changed(hGraphExec);
    return spw_process_driver()->cuGraphExecBatchMemOpNodeSetParams(hGraphExec, hNode, nodeParams);
}

CUresult spw_serve_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUgraphNodeParams *nodeParams)
{
    spw_graph_changed(hGraphExec);
    return spw_process_driver()->cuGraphExecNodeSetParams(hGraphExec, hNode, nodeParams);
}

/* ---- destroying ---- */

CUresult spw_serve_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct spw_graph_uses *uses = spw_graph_take(hGraphExec);
    CUresult result = spw_process_driver()->cuGraphExecDestroy(hGraphExec);

    if (result == CUDA_SUCCESS) {
        spw_graph_drop(uses);
    } else {
        spw_graph_put_back(hGraphExec, uses);
    }
    return result;
}

CUresult spw_serve_cuGraphDestroy(CUgraph hGraph)
{
    bool captured = spw_graph_forget(hGraph);
    CUresult result = spw_process_driver()->cuGraphDestroy(hGraph);

    if (captured && result != CUDA_SUCCESS) {
        spw_graph_captured(hGraph);
    } else if (captured) {
        spw_graph_settle();
    }
    return result;
}
