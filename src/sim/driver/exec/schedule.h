/* The scheduler: runs pending items in virtual time.
 *
 * The clock advances with every API call, except a thread's queries about its own context
 * (entry.c), and while the host waits. An item is ready when its predecessor in the stream and all
 * its fences are complete. The item then begins after a random delay and takes the time that the
 * cost model gives (timing.h). At the end of this time, the item takes effect and is complete. The
 * delay is drawn from SPILLWAY_SIM_SEED when the item is submitted; seed 0 means no delays. Without
 * SPILLWAY_SIM_TIME, items take no time. If there is also no delay, an item that can run does so
 * before the submitting call returns.
 *
 * Real time has no influence, so seed and call sequence determine the order of all events of a
 * single-threaded program. Host functions run on a separate thread. The next API call waits briefly
 * for them to return (callback.h).
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
    bool polls;               /* blocked until a word of memory changes; no call announces the
                               * change */
    void *state;              /* owned by the operation, see struct sim_op_class */
};

/* Takes a reference to the operation and queues it behind the stream's items. The operation also
 * waits for the fences that the rules of the legacy stream require, and for the fences in `after`,
 * which may be NULL. Then runs the items that can run. The stream must not be capturing.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_schedule_submit(struct sim_stream *stream, struct sim_op *op,
                             const struct sim_fences *after);

/* Run the scheduler until the fences are complete. May release the lock temporarily. */
void sim_schedule_wait(const struct sim_fence *fence);
void sim_schedule_wait_all(const struct sim_fences *fences);

/* Lets the clock run until the fence is complete, or until all pending items wait for the host. */
void sim_schedule_expect(const struct sim_fence *fence);

/* Lets the clock run until the next item is complete, unless all pending items wait for the host.
 */
void sim_schedule_expect_next(void);

/* Runs items that can run now, without advancing the clock. */
void sim_schedule_run(void);

/* Runs or drops all pending items of the context's streams. May release the lock temporarily. */
void sim_schedule_drop_context(CUcontext ctx);

/* Add the fences of all pending work of a context, or of all contexts of a device.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_schedule_pending_of_context(CUcontext ctx, struct sim_fences *fences);
CUresult sim_schedule_pending_of_device(const struct sim_device *device, struct sim_fences *fences);

/* Advances the clock by `ns` and runs the items that become due during this time. Nearly every API
 * call begins with this (entry.c). May release the lock temporarily. */
void sim_schedule_step(uint64_t ns);

/* An unfinished operation that names part of [address, address + size), or NULL. */
const struct sim_op *sim_schedule_user(CUdeviceptr address, size_t size);
