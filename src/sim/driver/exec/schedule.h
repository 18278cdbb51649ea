/* The scheduler: when pending items run, in virtual time.
 *
 * The clock advances with every API call but a thread's questions about its own context (entry.c),
 * and where the host waits. An item may begin when the item before it in its stream and all its
 * fences are complete; it begins a delay later, drawn from SPILLWAY_SIM_SEED when it is submitted,
 * takes the time that the cost model says (timing.h), and has its effect and is complete at the end
 * of that. Seed 0 means no delays; without SPILLWAY_SIM_TIME nothing takes time either: what can
 * run, runs before the submitting call returns. Nothing here looks at real time, so for a
 * single-threaded program seed and call sequence fix the order in which everything happens; host
 * functions, which run on a thread, are given a moment to return at the next call (callback.h).
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/exec/op.h"
#include "sim/driver/exec/stream.h"
#include "sim/driver/exec/timing.h"

/* A point in a stream: complete when that many of its items are. */
struct sim_fence {
    struct sim_stream *stream; /* a reference */
    uint64_t number;
};

/* A set of fences; zeroed it is empty. */
struct sim_fences {
    struct sim_fence *list;
    size_t count;
};

/* One operation in the queue of a stream. */
struct sim_item {
    struct sim_item *next;
    struct sim_stream *stream;
    struct sim_op *op;        /* a reference */
    struct sim_fences after;  /* what it waits for besides its stream */
    uint64_t number;          /* its position in the stream, from 1 */
    uint64_t delay;           /* nanoseconds before it begins */
    struct sim_timing timing; /* set when it has become first and its fences are done */
    bool started;             /* timing is set */
    bool polls;               /* blocked until memory changes, which nobody announces */
    void *state;              /* the operation's own, see struct sim_op_class */
};

/* True if the point was reached. */
bool sim_fence_is_done(const struct sim_fence *fence);

/* Adds everything submitted to the stream so far, up to item `number`; nothing if that is complete.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_fences_add(struct sim_fences *fences, struct sim_stream *stream, uint64_t number);
CUresult sim_fences_add_all(struct sim_fences *fences, const struct sim_fences *more);

/* Drops complete fences; true if none is left. */
bool sim_fences_prune(struct sim_fences *fences);
void sim_fences_fini(struct sim_fences *fences);

/* Queues the operation (taking a reference of its own) behind what the stream holds, what the rules
 * of the legacy stream ask for, and `after` (may be NULL); then runs what can run. The stream is
 * not capturing. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_schedule_submit(struct sim_stream *stream, struct sim_op *op,
                             const struct sim_fences *after);

/* Runs the scheduler until the fence is complete. The lock may be released meanwhile. */
void sim_schedule_wait(const struct sim_fence *fence);
void sim_schedule_wait_all(const struct sim_fences *fences);

/* Lets the clock run until the fence is complete, or nothing is left that time alone completes. */
void sim_schedule_expect(const struct sim_fence *fence);

/* Runs what can run now, without advancing the clock. */
void sim_schedule_run(void);

/* Runs or drops everything that is pending in the context's streams. The lock may be released
 * meanwhile. */
void sim_schedule_drop_context(CUcontext ctx);

/* The fences of all pending work of a context; of all contexts of a device. */
CUresult sim_schedule_pending_of_context(CUcontext ctx, struct sim_fences *fences);
CUresult sim_schedule_pending_of_device(const struct sim_device *device, struct sim_fences *fences);

/* Advances the clock by `ns` and runs what becomes due on the way. Every call after cuInit begins
 * with it. The lock may be released meanwhile. */
void sim_schedule_step(uint64_t ns);

/* Unfinished work that names part of [address, address + size), or NULL. */
const struct sim_op *sim_schedule_user(CUdeviceptr address, size_t size);
