/* Operation graphs: their tensors, and the memory that their execution touches.
 *
 * Locking: none; a finalized descriptor does not change. */
#pragma once

#include "sim/libs/cudnn/descriptor.h"

/* Adds the memory that the graph reads and writes when the graph is executed with the data of a
 * variant pack. CUDNN_STATUS_BAD_PARAM for a tensor that is not in the graph, or a malformed pack.
 */
cudnnStatus_t sim_cudnn_graph_add(const struct sim_cudnn_descriptor *graph,
                                  const struct sim_cudnn_descriptor *pack,
                                  struct sim_shim_work *work);

/* Sets the demand of an execution of the graph to that of its convolutions, if it has any. The
 * memory must have been added before. The workspace has the given size. */
void sim_cudnn_graph_demand(const struct sim_cudnn_descriptor *graph, size_t workspace_bytes,
                            struct sim_shim_work *work);

/* The kernel name for launches of the graph: the name of the graph's first convolution, or "graph"
 * if there is none. The string is static. */
const char *sim_cudnn_graph_kernel(const struct sim_cudnn_descriptor *graph);

/* An estimate of the workspace, in bytes, for an execution of the graph. The workspace of a
 * convolution holds a copy of every tensor whose channels are not the last dimension, because the
 * fast kernels need the channels last. For other graphs, the estimate is 0. */
int64_t sim_cudnn_graph_workspace_bytes(const struct sim_cudnn_descriptor *graph);
