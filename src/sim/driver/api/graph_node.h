/* Conversion between graph nodes and the parameters of cuda.h.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/exec/op.h"
#include "sim/driver/graph/graph.h"

/* Makes the operation that the parameters describe, and writes outputs to *params (the address of
 * an allocation, the handle of a child graph). CUDA_ERROR_NOT_SUPPORTED for kinds that are not
 * modelled, CUDA_ERROR_INVALID_VALUE, and the errors of each kind. */
CUresult sim_node_op_new(CUgraphNodeParams *params, struct sim_op **ret_op);

/* Replaces the parameters of a node by others of the same kind. */
CUresult sim_node_set_params(struct sim_node *node, CUgraphNodeParams *params);

/* As sim_node_set_params(), but CUDA_ERROR_INVALID_VALUE if `node` is NULL. */
CUresult sim_node_replace(struct sim_node *node, CUgraphNodeParams params);

/* The type in the result of the functions below if the program gave no parameters. The functions
 * above return CUDA_ERROR_INVALID_VALUE for this type. */
#define SIM_NODE_NONE ((CUgraphNodeType)-1)

/* The parameters of a node, from the struct of its kind, or from its event. CUgraphNodeParams
 * has one member for each kind, which begins with this struct. The member for copies has the struct
 * at a later place. */
CUgraphNodeParams sim_params_of(CUgraphNodeType type, const void *given, size_t size);
CUgraphNodeParams sim_params_of_memset(const CUDA_MEMSET_NODE_PARAMS *given, CUcontext ctx);
CUgraphNodeParams sim_params_of_memcpy(const CUDA_MEMCPY3D *given, CUcontext ctx);
