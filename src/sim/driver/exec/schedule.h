/* The scheduler: runs pending items in virtual time.
 *
 * The clock advances with every API call, except a thread's queries about its own context
 * (entry.c), and while the host waits. An item is ready when its predecessor in the stream and all
 * its fences are complete. It then begins after a delay, which was drawn from SPILLWAY_SIM_SEED at
 * submission, and takes the time of the cost model (timing.h). At the end of that time it takes
 * effect and is complete. Seed 0 means no delays. Without SPILLWAY_SIM_TIME items also take no
 * time: an item that can run does so before the submitting call returns.
 *
 * Real time has no influence, so seed and call sequence determine the order of all events of a
 * single-threaded program. Host functions run on a thread of their own; the next API call waits a
 * moment for them to return (callback.h).
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/exec/fence.h"
#include "sim/driver/exec/op.h"
#include "sim/driver/exec/stream.h"
#include "sim/driver/exec/timing.h"

/* One operation in the queue of a stream. */
struct sim_item {
    struct sim_item *next;
    struct sim_stream *stream;
    struct sim_op *op;        /* a reference */
    struct sim_fences after;  /* fences it waits for */
    uint64_t number;          /* its position in the stream, from 1 */
    uint64_t delay;           /* nanoseconds before it begins */
    struct sim_timing timing; /* set when the item is the first of its stream and its fences are
                               * complete */
    bool started;             /* timing is set */
    bool polls;               /* blocked until a word of memory changes, which nothing announces */
    void *state;              /* owned by the operation, see struct sim_op_class */
};

/* Takes a reference to the operation and queues it behind the stream's items, the fences from the
 * rules of the legacy stream, and `after` (may be NULL). Then runs items that can run. The stream
 * must not be capturing. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_schedule_submit(struct sim_stream *stream, struct sim_op *op,
                             const struct sim_fences *after);

/* Run the scheduler until the fences are complete. May release the lock in between. */
void sim_schedule_wait(const struct sim_fence *fence);
void sim_schedule_wait_all(const struct sim_fences *fences);

/* Lets the clock run until the fence is complete, or until all pending items wait for the host. */
void sim_schedule_expect(const struct sim_fence *fence);

/* Runs items that can run now, without advancing the clock. */
void sim_schedule_run(void);

/* Runs or drops all pending items of the context's streams. May release the lock in between. */
void sim_schedule_drop_context(CUcontext ctx);

/* Add the fences of all pending work of a context, or of all contexts of a device.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_schedule_pending_of_context(CUcontext ctx, struct sim_fences *fences);
CUresult sim_schedule_pending_of_device(const struct sim_device *device, struct sim_fences *fences);

/* Advances the clock by `ns` and runs items that become due in between. Nearly every API call
 * begins with this (entry.c). May release the lock in between. */
void sim_schedule_step(uint64_t ns);

/* An unfinished operation that names part of [address, address + size), or NULL. */
const struct sim_op *sim_schedule_user(CUdeviceptr address, size_t size);
