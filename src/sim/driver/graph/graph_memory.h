/* Memory owned by graphs: allocation and free nodes.
 *
 * When an allocation node is created, its memory is taken from the device. A real driver takes the
 * memory only at the first launch or upload. The memory is returned to the device when the graph
 * and all its executable graphs are destroyed and no launch has left the allocation live. The
 * address of the memory never changes.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "sim/driver/core/device.h"
#include "sim/driver/exec/op.h"
#include "sim/driver/graph/graph.h"

/* Creates an allocation and the operation of its node. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_graph_alloc_op_new(struct sim_device *device, size_t size, struct sim_op **ret_op,
                                CUdeviceptr *ret_address);

/* Creates the operation of a free node. CUDA_ERROR_INVALID_VALUE if the address does not belong to
 * an allocation node, or if the allocation already has a free node. */
CUresult sim_graph_free_op_new(CUdeviceptr address, struct sim_op **ret_op);

/* Address and size of the memory that the operation allocates or frees. */
CUdeviceptr sim_graph_memory_address(const struct sim_op *op);
size_t sim_graph_memory_size(const struct sim_op *op);

/* True if an allocation of the graph is live from an earlier launch. */
bool sim_graph_has_live_memory(const struct sim_graph *graph);

/* Frees the graph's live allocations (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH). */
void sim_graph_free_live_memory(const struct sim_graph *graph);

/* True if the graph has allocation or free nodes. */
bool sim_graph_has_memory_nodes(const struct sim_graph *graph);

/* Frees a graph's allocation that a launch has left live. Used by cuMemFree, and by cuMemFreeAsync
 * outside of a capture. CUDA_ERROR_INVALID_VALUE if no such allocation has this address. */
CUresult sim_graph_memory_release(CUdeviceptr address);

/* Capture an allocation or a free on a capturing stream: add a node to the graph under
 * construction. Return the errors of sim_graph_alloc_op_new() or sim_graph_free_op_new(), and of
 * sim_submit(). */
CUresult sim_capture_mem_alloc(struct sim_stream *stream, size_t size, CUdeviceptr *ret_address);
CUresult sim_capture_mem_free(struct sim_stream *stream, CUdeviceptr address);

/* Memory that the graphs of a device hold: cuDeviceGetGraphMemAttribute. */
struct sim_graph_usage {
    cuuint64_t used, used_high;
    cuuint64_t reserved, reserved_high;
};

/* The usage of a device. The caller may reset the high-water marks to the current values. */
struct sim_graph_usage *sim_graph_usage_of(CUdevice device);
