/* Conversion between graph nodes and the parameters of cuda.h.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/exec/op.h"
#include "sim/driver/graph/graph.h"

/* Creates the operation that the parameters describe. Writes the outputs to *params: the address of
 * an allocation, or the handle of a child graph. Errors: CUDA_ERROR_NOT_SUPPORTED for kinds that
 * are not modelled, CUDA_ERROR_INVALID_VALUE, and the errors of the node's kind. */
CUresult sim_node_op_new(CUgraphNodeParams *params, struct sim_op **ret_op);

/* Replaces the parameters of a node with parameters of the same kind. */
CUresult sim_node_set_params(struct sim_node *node, CUgraphNodeParams *params);

/* As sim_node_set_params(), but CUDA_ERROR_INVALID_VALUE if `node` is NULL. */
CUresult sim_node_replace(struct sim_node *node, CUgraphNodeParams params);

/* The type of the parameters that the functions below return if the program passed none. The
 * functions above return CUDA_ERROR_INVALID_VALUE for this type. */
#define SIM_NODE_NONE ((CUgraphNodeType)-1)

/* Convert the struct of one kind of node, or an event, to CUgraphNodeParams. CUgraphNodeParams has
 * one member for each kind of node. Each member begins with the kind's struct, except the member
 * for copies, which contains its struct at a later offset. */
CUgraphNodeParams sim_params_of(CUgraphNodeType type, const void *given, size_t size);
CUgraphNodeParams sim_params_of_memset(const CUDA_MEMSET_NODE_PARAMS *given, CUcontext ctx);
CUgraphNodeParams sim_params_of_memcpy(const CUDA_MEMCPY3D *given, CUcontext ctx);
