/* Conversion between graph nodes and the parameters of cuda.h.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/exec/op.h"
#include "sim/driver/graph/graph.h"

/* Makes the operation that the parameters describe, and writes their outputs to *params (the
 * address of an allocation, the handle of a child graph). CUDA_ERROR_NOT_SUPPORTED for kinds that
 * are not modelled, CUDA_ERROR_INVALID_VALUE, and the errors of each kind. */
CUresult sim_node_op_new(CUgraphNodeParams *params, struct sim_op **ret_op);

/* Replaces the parameters of a node by others of the same kind. */
CUresult sim_node_set_params(struct sim_node *node, CUgraphNodeParams *params);
