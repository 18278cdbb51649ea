/* User objects: a destructor of the program, called when the last reference to the object is
 * dropped.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <cuda.h>

struct sim_user_object {
    CUuserObject handle;
    unsigned int refs;
    CUhostFn destroy;
    void *data;
};

/* Drops references. After the last one, the callback thread calls the destructor. */
void sim_user_object_release(struct sim_user_object *object, unsigned int count);
