/* Fences made of driver events.
 *
 * A fence of a stream is one event. A fence of the device has one event for each known context of
 * the device, and of peers that may reach the device's memory. These events are recorded with
 * cuCtxRecordEvent (CUDA 12.5), which covers every stream of a context. On a driver without that
 * call a fence of the device is deferred: it has a number instead of events. It is complete once
 * every context was synchronised (by spw_backend_fence_wait) after the fence was made. A watch is a
 * fence of a stream without an event: it counts as complete whenever the stream is idle. Unused
 * events are kept for later fences, by context: an event belongs to the context that it was created
 * in.
 *
 * Locking: the caller holds the pool's lock, except for functions marked "No lock". An internal
 * mutex protects every record: a context can be removed while a thread waits for a fence. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "driver/driver.h"
#include "pool/vm_ops.h"
#include "system/lock.h"

/* A context that fences of the device cover. */
struct spw_backend_context {
    struct spw_backend_context *next;
    CUcontext context;
    bool peer;             /* of another device, whose kernels may reach this device's memory */
    bool ending;           /* about to be destroyed: nothing is created in it */
    uint64_t synchronized; /* it delays no deferred fence up to this number */
};

struct spw_backend_event {
    struct spw_backend_event *next; /* in the list of its fence, or of unused events */
    CUevent event;
    CUcontext context;
};

struct spw_backend_fence {
    struct spw_backend_fence *next;     /* in the list of unused fences */
    struct spw_backend_fence *all_next; /* in the list of all fences */
    uint64_t deferred;                  /* the number of a deferred fence; 0: not deferred */
    CUcontext watched_in;               /* the context of the watched stream; NULL: no watch */
    CUstream watched;
    struct spw_backend_event *events;
};

/* A thread that is synchronising a context. It holds no lock. */
struct spw_backend_fence_visit {
    struct spw_backend_fence_visit *next;
    CUcontext context;
};

struct spw_backend_fences {
    struct spw_driver *driver;
    int ordinal;
    struct spw_lock lock;
    pthread_cond_t left; /* a visit ended */
    struct spw_backend_fence_visit *visits;
    bool defers;            /* the driver cannot record events of a context */
    uint64_t last_deferred; /* number of the last deferred fence */
    uint64_t synchronized;  /* deferred fences up to this number are complete */
    struct spw_backend_context *contexts;
    bool missing; /* a context could not be added, so no fence covers the whole device */
    struct spw_backend_event *unused_events;
    struct spw_backend_fence *unused, *all;
};

/* Records a fence behind all work submitted so far to `stream`, or to the device if the id is
 * SPW_STREAM_ALL. AGAIN while the stream is being captured. For the device: AGAIN while any capture
 * is open. */
enum spw_err spw_backend_fence_record(struct spw_backend_fences *fences,
                                      const struct spw_stream *stream,
                                      struct spw_backend_fence **ret_fence);

/* Makes a watch of a stream without a call of the driver, in case no event can be recorded behind
 * the work that the caller submits next. No other thread may submit to the stream. METADATA_NOMEM
 * without memory. */
enum spw_err spw_backend_fence_watch(struct spw_backend_fences *fences,
                                     const struct spw_stream *stream,
                                     struct spw_backend_fence **ret_fence);

/* True when fences of the device are known to be deferred. */
bool spw_backend_fences_defer(struct spw_backend_fences *fences);

/* True when the fence is deferred and not complete. No lock. */
bool spw_backend_fence_is_deferred(struct spw_backend_fences *fences,
                                   const struct spw_backend_fence *fence);

/* OK when complete, AGAIN when not. The work of a destroyed context is complete. */
enum spw_err spw_backend_fence_query(struct spw_backend_fences *fences,
                                     struct spw_backend_fence *fence);

/* Blocks until complete. AGAIN when the fence is deferred and a capture is open. No lock. */
enum spw_err spw_backend_fence_wait(struct spw_backend_fences *fences,
                                    struct spw_backend_fence *fence);

/* Blocks until complete; AGAIN after `patience_ns`. AGAIN at once for a deferred fence that is not
 * complete. No lock. */
enum spw_err spw_backend_fence_wait_soon(struct spw_backend_fences *fences,
                                         struct spw_backend_fence *fence, uint64_t patience_ns);

/* Makes later work of `stream` wait for the fence. AGAIN when that is not possible now, and for a
 * watch. */
enum spw_err spw_backend_fence_wait_stream(struct spw_backend_fences *fences,
                                           const struct spw_stream *stream,
                                           struct spw_backend_fence *fence);

/* Takes back a fence, to use it and its events again. */
void spw_backend_fence_drop(struct spw_backend_fences *fences, struct spw_backend_fence *fence);

/* Makes `context` current unless it already is. The matching leave needs *ret_pushed. */
CUresult spw_backend_fences_enter(struct spw_backend_fences *fences, CUcontext context,
                                  bool *ret_pushed);

/* Undoes enter. */
void spw_backend_fences_leave(struct spw_backend_fences *fences, bool pushed);

/* Makes the records ready for use. */
void spw_backend_fences_init(struct spw_backend_fences *fences, struct spw_driver *driver,
                             int ordinal);

/* Adds a context of this device, or of a peer, to the contexts that fences of the device cover. */
void spw_backend_fences_note_context(struct spw_backend_fences *fences, CUcontext context,
                                     bool peer);

/* Returns the oldest known context of this device. It is likely to outlive the others, and an
 * allocation ends with its context. NULL if every known context is ending. */
CUcontext spw_backend_fences_own_context(struct spw_backend_fences *fences);

/* Notes that a context is about to be destroyed: nothing is created in it from now on. */
void spw_backend_fences_end_context(struct spw_backend_fences *fences, CUcontext context);

/* Removes a context and its events. */
void spw_backend_fences_forget_context(struct spw_backend_fences *fences, CUcontext context);

/* Removes all contexts and their events. */
void spw_backend_fences_forget_contexts(struct spw_backend_fences *fences);

/* Frees the records, and with `destroy_events` the events. No thread may use them any more. */
void spw_backend_fences_fini(struct spw_backend_fences *fences, bool destroy_events);
