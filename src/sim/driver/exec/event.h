/* Events: points in streams that can be queried and waited for.
 *
 * Each recording of an event creates a new record, so waits for an earlier record are not affected.
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
    CUcontext ctx;          /* NULL: the event or the context was destroyed */
    CUevent handle;
    unsigned int refs;
    unsigned int flags;        /* CUevent_flags */
    struct sim_record *record; /* NULL: never recorded */
    bool shared;               /* shared with another process (ipc_event.c): complete as soon as it
                                * is recorded */

    /* If the event was last recorded in a capturing stream: the capture's id, and the nodes of the
     * capture that a wait for the event depends on. The nodes are valid only while the capture is
     * open. */
    unsigned long long capture_id; /* 0: not captured */
    struct sim_node **captured;
    size_t captured_count;
};

/* Creates an event of the context, with a handle. NULL if host memory is exhausted. */
struct sim_event *sim_event_new(CUcontext ctx, unsigned int flags);

/* The event of a handle. CUDA_ERROR_INVALID_HANDLE, or the sticky error of the event's context. */
CUresult sim_event_resolve(CUevent handle, struct sim_event **ret_event);

/* Take and drop a reference; the last one frees the event. */
struct sim_event *sim_event_ref(struct sim_event *event);
void sim_event_unref(struct sim_event *event);

/* Record the event behind the work submitted to the stream so far and, with `after`, also behind
 * these fences. The stream must not be capturing. */
CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream);
CUresult sim_event_record_after(struct sim_event *event, struct sim_stream *stream,
                                const struct sim_fences *after);

/* sim_event_is_recorded(): true if the event was ever recorded. sim_event_is_done(): true if the
 * work before its last record is complete, or if it was never recorded. */
bool sim_event_is_recorded(const struct sim_event *event);
bool sim_event_is_done(const struct sim_event *event);

/* The virtual time when the stream reached a recorded event, in nanoseconds. */
uint64_t sim_event_time(const struct sim_event *event);

/* Waits until the event is complete. May release the lock while it waits, so another thread may
 * destroy the event. Returns the sticky error of the event's context, or
 * CUDA_ERROR_CONTEXT_IS_DESTROYED. */
CUresult sim_event_settle(struct sim_event *event);

/* Lets the clock run until the event is complete, or until all pending items wait for the host. */
void sim_event_expect(const struct sim_event *event);

/* Adds the fence of the event's last record. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_event_add_fence(const struct sim_event *event, struct sim_fences *fences);

/* Makes later work of the stream wait for the event. The stream must not be capturing. */
CUresult sim_event_wait(struct sim_event *event, struct sim_stream *stream);

/* Operations of graphs that record or wait for an event each time the graph is launched. NULL if
 * host memory is exhausted. */
struct sim_op *sim_event_record_op_new(struct sim_event *event, int device);
struct sim_op *sim_event_wait_op_new(struct sim_event *event, int device);

/* The event of an operation of the two functions above. */
struct sim_event *sim_event_of_op(const struct sim_op *op);

/* Invalidates the event's handle, because the event or its context is destroyed. */
void sim_event_retire(struct sim_event *event);
