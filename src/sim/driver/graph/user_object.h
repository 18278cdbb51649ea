/* User objects: a destructor of the program, called when the last reference to the object is
 * dropped.
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

/* Drops references. After the last one, the callback thread calls the destructor. */
void sim_user_object_release(struct sim_user_object *object, unsigned int count);

/* Gives the graph its own references; it drops them when it is destroyed. CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult sim_graph_own_object(struct sim_graph *graph, struct sim_user_object *object,
                              unsigned int count);

/* As sim_graph_own_object(), but takes over references of the caller. */
CUresult sim_graph_adopt_object(struct sim_graph *graph, struct sim_user_object *object,
                                unsigned int count);
