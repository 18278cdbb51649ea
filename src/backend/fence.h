/* Fences made of driver events.
 *
 * A fence of a stream is one event. A fence of the device is one event for each known context of
 * the device and of the peers that may reach its memory, recorded with cuCtxRecordEvent (CUDA
 * 12.5), which covers every stream of the context. On a driver without that call a fence of the
 * device is deferred: it has a number instead of events, and is complete once every context was
 * synchronised after its creation (by spw_backend_fence_wait). A watch has no event either: it is
 * complete while its stream is idle. Unused events are kept for later fences, by context: an event
 * belongs to the context that it was created in.
 *
 * Locking: the caller holds the pool's lock, except for functions marked "No lock". An internal
 * mutex protects every record: a context can be removed while a thread waits for a fence. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/lock.h"
#include "driver/driver.h"
#include "pool/vm_ops.h"

/* A context that fences of the device cover. */
struct spw_backend_context {
    struct spw_backend_context *next;
    CUcontext context;
    bool peer;             /* of another device, whose kernels may reach this device's memory */
    bool ending;           /* about to be destroyed: nothing is created in it */
    uint64_t synchronized; /* deferred fences up to this number are complete in it */
};

struct spw_backend_event {
    struct spw_backend_event *next; /* of its fence, or of the unused ones */
    CUevent event;
    CUcontext context;
};

struct spw_backend_fence {
    struct spw_backend_fence *next;     /* in the list of unused ones */
    struct spw_backend_fence *all_next; /* in the list of all */
    uint64_t deferred;                  /* the number of a deferred fence; 0: not deferred */
    CUcontext watched_in;               /* of a watch's stream; NULL: no watch */
    CUstream watched;
    struct spw_backend_event *events;
};

/* A thread that synchronises a context, without a lock. */
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
    bool missing; /* a context could not be recorded: no fence covers the whole device */
    struct spw_backend_event *unused_events;
    struct spw_backend_fence *unused, *all;
};

/* Records a fence behind all work submitted so far to `stream`, or to the device if the id is
 * SPW_STREAM_ALL. AGAIN while the stream, or any stream of the device, is being captured. */
enum spw_err spw_backend_fence_record(struct spw_backend_fences *fences,
                                      const struct spw_stream *stream,
                                      struct spw_backend_fence **ret_fence);

/* Makes a watch of a stream without a call to the driver, for the case that no event can be
 * recorded behind the caller's next work. Only the caller submits to the stream. METADATA_NOMEM
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

/* Takes a fence back; it and its events are reused. */
void spw_backend_fence_drop(struct spw_backend_fences *fences, struct spw_backend_fence *fence);

/* Makes `context` current unless it is. *ret_pushed goes to the matching leave. */
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

/* Returns the oldest known context of this device, which is likely to outlive the others.
 * Allocations in a context end with it. NULL if every known context is ending. */
CUcontext spw_backend_fences_own_context(struct spw_backend_fences *fences);

/* A context is about to be destroyed. */
void spw_backend_fences_end_context(struct spw_backend_fences *fences, CUcontext context);

/* Removes a context and its events. */
void spw_backend_fences_forget_context(struct spw_backend_fences *fences, CUcontext context);

/* Removes all contexts and their events. */
void spw_backend_fences_forget_contexts(struct spw_backend_fences *fences);

/* Frees the records, and with `destroy_events` the events. No thread may use them any more. */
void spw_backend_fences_fini(struct spw_backend_fences *fences, bool destroy_events);
