/* Memory owned by graphs: allocation and free nodes.
 *
 * The memory is taken from the device when the node is created and given back when neither the
 * graph nor an executable graph made from it is left, and it is not live from a launch; its address
 * stays the same in between. A real driver takes it at the first launch or upload.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "sim/driver/core/device.h"
#include "sim/driver/exec/op.h"
#include "sim/driver/graph/graph.h"

/* A new allocation and the operation of its node. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_graph_alloc_op_new(struct sim_device *device, size_t size, struct sim_op **ret_op,
                                CUdeviceptr *ret_address);

/* The operation of a free node. CUDA_ERROR_INVALID_VALUE if the address is not that of an
 * allocation node, or has a free node already. */
CUresult sim_graph_free_op_new(CUdeviceptr address, struct sim_op **ret_op);

/* True if the operation is that of an allocation or free node. */
bool sim_op_is_graph_memory(const struct sim_op *op);

/* Address and size of the memory that it allocates or frees. */
CUdeviceptr sim_graph_memory_address(const struct sim_op *op);
size_t sim_graph_memory_size(const struct sim_op *op);

/* True if an allocation of the graph is live from an earlier launch. */
bool sim_graph_has_live_memory(const struct sim_graph *graph);

/* Frees what is live of the graph's allocations: CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.
 */
void sim_graph_free_live_memory(const struct sim_graph *graph);

/* True if the graph has allocation or free nodes. */
bool sim_graph_has_memory_nodes(const struct sim_graph *graph);

/* Frees an allocation of a graph that is live from a launch: cuMemFree or cuMemFreeAsync of an
 * address outside of a capture. CUDA_ERROR_INVALID_VALUE if it is no such address. */
CUresult sim_graph_memory_release(CUdeviceptr address);

/* An allocation or a free on a capturing stream: adds a node to the graph under construction. The
 * errors of the operations above, and of sim_submit(). */
CUresult sim_capture_mem_alloc(struct sim_stream *stream, size_t size, CUdeviceptr *ret_address);
CUresult sim_capture_mem_free(struct sim_stream *stream, CUdeviceptr address);

/* How much memory the graphs of a device hold: cuDeviceGetGraphMemAttribute. */
struct sim_graph_usage {
    cuuint64_t used, used_high;
    cuuint64_t reserved, reserved_high;
};

/* The figures of a device; the caller may lower the highs to the present values. */
struct sim_graph_usage *sim_graph_usage_of(CUdevice device);
