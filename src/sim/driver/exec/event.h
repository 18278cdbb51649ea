/* Events: points in streams that can be asked and waited for.
 *
 * Recording makes a new record, so that what waits for an earlier one is not affected.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/exec/op.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/stream.h"

struct sim_record;

struct sim_event {
    struct sim_event *next; /* of its context */
    CUcontext ctx;          /* NULL when the event or the context is gone */
    CUevent handle;
    unsigned int refs;
    unsigned int flags;        /* CUevent_flags */
    struct sim_record *record; /* NULL: never recorded */
    bool shared;               /* with another process (ipc_event.c): complete once recorded */

    /* Last recorded in a capturing stream: the capture, and its nodes that the event stands for.
     * They may be looked at only while that capture is open. */
    unsigned long long capture_id; /* 0: not captured */
    struct sim_node **captured;
    size_t captured_count;
};

/* A new event of the context with a handle. NULL when host memory is out. */
struct sim_event *sim_event_new(CUcontext ctx, unsigned int flags);

/* The event of a handle; CUDA_ERROR_INVALID_HANDLE, or its context's sticky error. */
CUresult sim_event_resolve(CUevent handle, struct sim_event **ret_event);

/* Takes a reference; drops one, and frees the event with the last. */
struct sim_event *sim_event_ref(struct sim_event *event);
void sim_event_unref(struct sim_event *event);

/* Records the event behind what the stream holds, which is not capturing, and behind `after`. */
CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream);
CUresult sim_event_record_after(struct sim_event *event, struct sim_stream *stream,
                                const struct sim_fences *after);

/* True if the event was ever recorded; true if the work it stands for is complete, or there is
 * none. */
bool sim_event_is_recorded(const struct sim_event *event);
bool sim_event_is_done(const struct sim_event *event);

/* When a recorded event was reached, in virtual nanoseconds. */
uint64_t sim_event_time(const struct sim_event *event);

/* Waits until what the event stands for is complete. The lock may be released meanwhile, and the
 * event go. The context's error. */
CUresult sim_event_settle(struct sim_event *event);

/* Lets the clock run until what the event stands for is complete, unless that waits for something
 * that is not on its way. */
void sim_event_expect(const struct sim_event *event);

/* Adds what the event stands for. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_event_add_fence(const struct sim_event *event, struct sim_fences *fences);

/* Lets later work of the stream, which is not capturing, wait for the event. */
CUresult sim_event_wait(struct sim_event *event, struct sim_stream *stream);

/* Operations of graphs that record or wait for an event each time the graph is launched. NULL when
 * host memory is out. */
struct sim_op *sim_event_record_op_new(struct sim_event *event, int device);
struct sim_op *sim_event_wait_op_new(struct sim_event *event, int device);

/* The event of such an operation. */
struct sim_event *sim_event_of_op(const struct sim_op *op);

/* Takes the handle away from an event: on destruction of it or of its context. */
void sim_event_retire(struct sim_event *event);
