/* Operation graphs: their tensors, and the memory that their execution touches.
 *
 * Locking: none; a finalized descriptor does not change. */
#pragma once

#include "sim/libs/cudnn/descriptor.h"

/* Adds the memory that an execution of the graph with the data of a variant pack reads and writes.
 * CUDNN_STATUS_BAD_PARAM for a tensor that is not in the graph, or a malformed pack. */
cudnnStatus_t sim_cudnn_graph_add(const struct sim_cudnn_descriptor *graph,
                                  const struct sim_cudnn_descriptor *pack,
                                  struct sim_shim_work *work);

/* The kernel name for launches of the graph: its first convolution, or "graph". Static. */
const char *sim_cudnn_graph_kernel(const struct sim_cudnn_descriptor *graph);

/* Bytes of workspace to execute the graph. This is an estimate. For a convolution it is a second
 * copy of every tensor whose channels are not last, because the fast kernels need them last. For
 * other graphs it is 0. */
int64_t sim_cudnn_graph_workspace_bytes(const struct sim_cudnn_descriptor *graph);
