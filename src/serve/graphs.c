/* Handles the end of CUDA graphs. Blocks that an executable graph names may be fixed until then
 * (graph/graph.h). */
#include "graph/graph.h"
#include "process/process.h"
#include "serve/handlers.h"

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
