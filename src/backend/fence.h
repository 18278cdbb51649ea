/* Fences made of driver events.
 *
 * A fence of a stream is one event; a fence of the device is one event for each known context of
 * it and of the devices that may reach its memory, recorded with cuCtxRecordEvent (CUDA 12.5: it
 * covers every stream of the context). A driver without that call has no such events: a fence of
 * the device is deferred then. It is a number, and complete when somebody has synchronised all
 * contexts since it was made, which spw_backend_fence_wait does. Events are kept for the next
 * fence, by context, because an event belongs to the context it was created in.
 *
 * Caller holds the pool's lock, but where it says no lock. A mutex inside covers every record, so
 * that a context can be forgotten while another thread waits for a fence. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lock.h"
#include "common/err.h"
#include "driver/driver.h"
#include "pool/vm_ops.h"

/* Contexts that a fence of one device can cover; with more, device-wide fences cannot be had. */
enum { SPW_FENCE_CONTEXTS = 64 };

struct spw_event {
    struct spw_event *next;
    CUevent event;
    CUcontext context;
};

struct spw_fence {
    struct spw_fence *next;     /* of the unused */
    struct spw_fence *all_next; /* of all there are, in use or not */
    uint64_t deferred;          /* the number of a deferred fence; else 0 */
    size_t count;
    struct spw_event *events[SPW_FENCE_CONTEXTS];
};

/* A thread that synchronises a context, without a lock. */
struct spw_fence_visit {
    struct spw_fence_visit *next;
    CUcontext context;
};

struct spw_fences {
    struct spw_driver *driver;
    int ordinal;
    struct spw_lock lock;
    pthread_cond_t left; /* a visit ended */
    struct spw_fence_visit *visits;
    bool defers;                            /* the driver has no events of a whole context */
    uint64_t last_deferred, synchronized;   /* numbers: given out; complete up to */
    CUcontext contexts[SPW_FENCE_CONTEXTS]; /* known: those of this device, then those of peers */
    size_t own_count, context_count;
    bool overflow; /* there was one more */
    struct spw_event *unused_events;
    struct spw_fence *unused, *all;
};

/* Records after everything submitted so far to `stream`, or with id SPW_STREAM_ALL to the device.
 * AGAIN while the stream, or for the device any stream, is being captured. */
enum spw_err spw_backend_fence_record(struct spw_fences *fences, const struct spw_stream *stream,
                                      struct spw_fence **ret_fence);

/* Whether fences of the device are deferred, as far as is known. */
bool spw_backend_fences_defer(struct spw_fences *fences);

/* Whether it takes a synchronisation of the device to complete this one. No lock. */
bool spw_backend_fence_is_deferred(struct spw_fences *fences, const struct spw_fence *fence);

/* OK when complete, AGAIN when not. A context that is gone has completed. */
enum spw_err spw_backend_fence_query(struct spw_fences *fences, struct spw_fence *fence);

/* Blocks until complete. AGAIN when the fence is deferred and a capture is open. No lock. */
enum spw_err spw_backend_fence_wait(struct spw_fences *fences, struct spw_fence *fence);

/* The same, but AGAIN when it takes longer than `patience_ns`, and at once for a
 * fence that takes a synchronisation. */
enum spw_err spw_backend_fence_wait_soon(struct spw_fences *fences, struct spw_fence *fence,
                                         uint64_t patience_ns);

/* Makes `stream` wait for the fence; AGAIN when that cannot be done. */
enum spw_err spw_backend_fence_wait_stream(struct spw_fences *fences,
                                           const struct spw_stream *stream,
                                           struct spw_fence *fence);

/* Keeps the fence and its events for later. */
void spw_backend_fence_drop(struct spw_fences *fences, struct spw_fence *fence);

/* Makes `context` current if it is not; *ret_pushed says whether leave has to undo it. */
CUresult spw_backend_fences_enter(struct spw_fences *fences, CUcontext context, bool *ret_pushed);
void spw_backend_fences_leave(struct spw_fences *fences, bool pushed);

/* Adds a context, of this device or of a peer, to those that a fence of the device covers, or takes
 * it out with its events. */
void spw_backend_fences_note_context(struct spw_fences *fences, CUcontext context, bool peer);
void spw_backend_fences_forget_context(struct spw_fences *fences, CUcontext context);

/* Takes all of them out. */
void spw_backend_fences_forget_contexts(struct spw_fences *fences);

/* Before the first use. */
void spw_backend_fences_init(struct spw_fences *fences, struct spw_driver *driver, int ordinal);

/* Frees the records, which nobody else uses any more; with `destroy_events`, the events are given
 * back to the driver. */
void spw_backend_fences_fini(struct spw_fences *fences, bool destroy_events);
