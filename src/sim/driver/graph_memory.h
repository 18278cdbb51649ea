/* Memory owned by graphs: allocation and free nodes.
 *
 * The memory is taken from the device when the node is created and given back when neither the
 * graph nor an executable graph made from it is left, and it is not live from a launch; its address
 * stays the same in between. A real driver takes it at the first launch or upload.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "sim/driver/device.h"
#include "sim/driver/graph.h"
#include "sim/driver/op.h"

/* A new allocation and the operation of its node. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_graph_alloc_op_new(struct sim_device *device, size_t size, struct sim_op **ret_op,
                                CUdeviceptr *ret_address);

/* The operation of a free node. CUDA_ERROR_INVALID_VALUE if the address is not that of an
 * allocation node, or has a free node already. */
CUresult sim_graph_free_op_new(CUdeviceptr address, struct sim_op **ret_op);

/* Whether the operation is one of these. */
bool sim_op_is_graph_memory(const struct sim_op *op);

/* Address and size of what it allocates or frees. */
CUdeviceptr sim_graph_memory_address(const struct sim_op *op);
size_t sim_graph_memory_size(const struct sim_op *op);

/* Whether an allocation of the graph is live from an earlier launch. */
bool sim_graph_has_live_memory(const struct sim_graph *graph);

/* Frees what is live of the graph's allocations: CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.
 */
void sim_graph_free_live_memory(const struct sim_graph *graph);

/* Whether the graph has allocation or free nodes. */
bool sim_graph_has_memory_nodes(const struct sim_graph *graph);
