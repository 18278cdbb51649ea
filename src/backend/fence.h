/* Fences, implemented with driver events.
 *
 * A fence of a stream is one event. A fence of the device has one event for each known context of
 * the device, and for each context of a peer that may access the device's memory. These events are
 * recorded with cuCtxRecordEvent (CUDA 12.5), which covers every stream of a context.
 *
 * If the driver does not support cuCtxRecordEvent, a fence of the device is deferred: it has a
 * number instead of events. A deferred fence is complete when every context has been synchronised
 * (by spw_backend_fence_wait) after the fence was made.
 *
 * A watch is a fence of a stream without an event. It counts as complete whenever the stream is
 * idle.
 *
 * Unused events are kept for later fences. They are kept by context, because an event can be
 * recorded only in the context that created it.
 *
 * Locking: the caller holds the pool's lock, except for functions marked "No lock". In addition, an
 * internal mutex protects every record, because a context can be removed while a thread waits for a
 * fence. */
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
    bool peer;             /* belongs to another device, whose kernels may access this device's
                              memory */
    bool ending;           /* about to be destroyed: nothing more is created in it */
    uint64_t synchronized; /* deferred fences up to this number need not wait for this context */
};

struct spw_backend_event {
    struct spw_backend_event *next; /* in the list of its fence, or of unused events */
    CUevent event;
    CUcontext context;
};

struct spw_backend_fence {
    struct spw_backend_fence *next;     /* in the list of unused fences */
    struct spw_backend_fence *all_next; /* in the list of all fences */
    uint64_t deferred;                  /* number of a deferred fence; 0: the fence is not
                                           deferred */
    CUcontext watched_in;               /* context of the watched stream; NULL: the fence is not a
                                           watch */
    CUstream watched;
    struct spw_backend_event *events;
};

/* A thread that is currently synchronising a context. It holds no lock. */
struct spw_backend_fence_visit {
    struct spw_backend_fence_visit *next;
    CUcontext context;
};

struct spw_backend_fences {
    struct spw_driver *driver;
    int ordinal;
    struct spw_lock lock;
    pthread_cond_t left; /* signalled when a visit ends */
    struct spw_backend_fence_visit *visits;
    bool defers;            /* the driver does not support cuCtxRecordEvent */
    uint64_t last_deferred; /* number of the last deferred fence */
    uint64_t synchronized;  /* deferred fences up to this number are complete */
    struct spw_backend_context *contexts;
    bool missing; /* a context could not be added, so fences do not cover the whole device */
    struct spw_backend_event *unused_events;
    struct spw_backend_fence *unused, *all;
};

/* Records a fence behind all work submitted so far to `stream`, or to the device if the stream's id
 * is SPW_STREAM_ALL. Returns AGAIN while the stream is being captured; for the device, while any
 * capture is open. */
enum spw_err spw_backend_fence_record(struct spw_backend_fences *fences,
                                      const struct spw_stream *stream,
                                      struct spw_backend_fence **ret_fence);

/* Makes a watch of a stream without a driver call. A watch is used if it may not be possible to
 * record an event behind the work that the caller submits next. No other thread may submit to the
 * stream. Returns METADATA_NOMEM if there is no memory. */
enum spw_err spw_backend_fence_watch(struct spw_backend_fences *fences,
                                     const struct spw_stream *stream,
                                     struct spw_backend_fence **ret_fence);

/* Returns true if fences of the device are known to be deferred. */
bool spw_backend_fences_defer(struct spw_backend_fences *fences);

/* Returns true if the fence is deferred and not complete. No lock. */
bool spw_backend_fence_is_deferred(struct spw_backend_fences *fences,
                                   const struct spw_backend_fence *fence);

/* Returns OK if the fence is complete, AGAIN if not. The work of a destroyed context counts as
 * complete. */
enum spw_err spw_backend_fence_query(struct spw_backend_fences *fences,
                                     struct spw_backend_fence *fence);

/* Waits until the fence is complete. Returns AGAIN if the fence is deferred and a capture is open.
 * No lock. */
enum spw_err spw_backend_fence_wait(struct spw_backend_fences *fences,
                                    struct spw_backend_fence *fence);

/* Waits until the fence is complete, at most `patience_ns`. Returns AGAIN after that time. For a
 * deferred fence that is not complete, returns AGAIN at once. No lock. */
enum spw_err spw_backend_fence_wait_soon(struct spw_backend_fences *fences,
                                         struct spw_backend_fence *fence, uint64_t patience_ns);

/* Makes later work of `stream` wait for the fence. Returns AGAIN if this is not possible now, and
 * for a watch. */
enum spw_err spw_backend_fence_wait_stream(struct spw_backend_fences *fences,
                                           const struct spw_stream *stream,
                                           struct spw_backend_fence *fence);

/* Takes back a fence. The fence and its events are used again. */
void spw_backend_fence_drop(struct spw_backend_fences *fences, struct spw_backend_fence *fence);

/* Makes `context` current, unless it already is. The matching leave needs *ret_pushed. */
CUresult spw_backend_fences_enter(struct spw_backend_fences *fences, CUcontext context,
                                  bool *ret_pushed);

/* Undoes spw_backend_fences_enter. */
void spw_backend_fences_leave(struct spw_backend_fences *fences, bool pushed);

/* Initialises the records. */
void spw_backend_fences_init(struct spw_backend_fences *fences, struct spw_driver *driver,
                             int ordinal);

/* Adds a context of this device, or with `peer` of another device, to the contexts that fences of
 * the device cover. */
void spw_backend_fences_note_context(struct spw_backend_fences *fences, CUcontext context,
                                     bool peer);

/* Returns the oldest known context of this device; NULL if every known context is about to be
 * destroyed. The oldest context is likely to outlive the others. This matters because an allocation
 * ends with its context. */
CUcontext spw_backend_fences_own_context(struct spw_backend_fences *fences);

/* Records that a context is about to be destroyed. Nothing is created in it from now on. */
void spw_backend_fences_end_context(struct spw_backend_fences *fences, CUcontext context);

/* Removes a context and its events. */
void spw_backend_fences_forget_context(struct spw_backend_fences *fences, CUcontext context);

/* Removes all contexts and their events. */
void spw_backend_fences_forget_contexts(struct spw_backend_fences *fences);

/* Frees the records, and with `destroy_events` also the events. No thread may be using them. */
void spw_backend_fences_fini(struct spw_backend_fences *fences, bool destroy_events);
