/* Operation graphs: which tensors they have, and what running them touches.
 *
 * Locking: none; a finalized descriptor does not change. */
#pragma once

#include "sim/libs/cudnn/descriptor.h"

/* Names the memory that executing the graph with the data of a variant pack reads and writes.
 * CUDNN_STATUS_BAD_PARAM for a tensor that the graph does not have, or a malformed pack. */
cudnnStatus_t sim_cudnn_graph_add(const struct sim_cudnn_descriptor *graph,
                                  const struct sim_cudnn_descriptor *pack,
                                  struct sim_shim_work *work);

/* What a launch of the graph is called: its first convolution, else "graph". Never freed. */
const char *sim_cudnn_graph_kernel(const struct sim_cudnn_descriptor *graph);

/* Workspace that executing the graph asks for. A guess, until it is calibrated on GPUs: a second
 * copy of every tensor of a convolution whose channels are not last, because the fast kernels want
 * them last; nothing for others. */
int64_t sim_cudnn_graph_workspace_bytes(const struct sim_cudnn_descriptor *graph);
