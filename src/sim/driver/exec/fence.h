/* Fences: points in streams that later work waits for.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/exec/stream.h"

/* A point in a stream: complete when `number` items of the stream are complete. */
struct sim_fence {
    struct sim_stream *stream; /* a reference */
    uint64_t number;
};

/* A set of fences; empty if zeroed. */
struct sim_fences {
    struct sim_fence *list;
    size_t count;
};

/* True if the fence is complete. */
bool sim_fence_is_done(const struct sim_fence *fence);

/* Add the fence of item `number` of the stream, or all fences of a set; complete fences are left
 * out. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_fences_add(struct sim_fences *fences, struct sim_stream *stream, uint64_t number);
CUresult sim_fences_add_all(struct sim_fences *fences, const struct sim_fences *more);

/* Drops complete fences. Returns true if no fence is left. */
bool sim_fences_prune(struct sim_fences *fences);
void sim_fences_fini(struct sim_fences *fences);
