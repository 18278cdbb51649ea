/* User objects: a destructor of the program, called when nobody refers to the object any more.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

#include "sim/driver/graph/graph.h"

struct sim_user_object {
    CUuserObject handle;
    unsigned int refs;
    CUhostFn destroy;
    void *data;
};

/* Drops references; with the last one the destructor is called on the callback thread. */
void sim_user_object_release(struct sim_user_object *object, unsigned int count);

/* Gives the graph references of its own, which it drops when it goes. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_graph_own_object(struct sim_graph *graph, struct sim_user_object *object,
                              unsigned int count);

/* As sim_graph_own_object(), but takes over references of the caller. */
CUresult sim_graph_adopt_object(struct sim_graph *graph, struct sim_user_object *object,
                                unsigned int count);
