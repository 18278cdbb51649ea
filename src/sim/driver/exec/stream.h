/* Streams: queues of operations that run in order.
 *
 * A stream outlives its handle while work is pending and while fences refer to it, so it is counted
 * by reference. Its position in time is two numbers: how many items were submitted, and how many
 * are complete.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/context.h"

struct sim_capture;
struct sim_item;
struct sim_node;

/* The range that cuCtxGetStreamPriorityRange reports on current GPUs. */
enum { SIM_PRIORITY_GREATEST = -5, SIM_PRIORITY_LEAST = 0 };

enum sim_stream_role {
    SIM_STREAM_USER,
    SIM_STREAM_LEGACY,     /* the context's NULL stream */
    SIM_STREAM_PER_THREAD, /* a thread's default stream */
    SIM_STREAM_INTERNAL,   /* no handle: order of cuCtxRecordEvent */
};

struct sim_stream {
    struct sim_stream *next;        /* of its context */
    struct sim_stream **place;      /* what points to it there */
    struct sim_stream *active_next; /* streams with pending items, see schedule.h */
    struct sim_stream *active_prev;
    CUcontext ctx;         /* NULL when the context is gone: then nothing is pending */
    CUstream handle;       /* NULL once destroyed, and for the default streams */
    unsigned long long id; /* cuStreamGetId: never used twice */
    unsigned int refs;
    bool retired; /* ended: leaves the context once nothing is pending */
    enum sim_stream_role role;
    unsigned int flags; /* CUstream_flags */
    int priority;
    uint64_t thread; /* PER_THREAD: whose */

    struct sim_item *first; /* pending items, oldest first */
    struct sim_item *last;
    uint64_t submitted;
    uint64_t completed;

    /* While work given to it is captured: the nodes that the next one depends on. Owned by
     * capture.c. */
    struct sim_capture *capture;
    struct sim_node **tail;
    size_t tail_count;
    CUgraphNode *tail_handles; /* what cuStreamGetCaptureInfo handed out; NULL: nothing */

    CUsynchronizationPolicy sync_policy; /* attributes: kept, without effect */
    CUlaunchMemSyncDomainMap domain_map;
    CUlaunchMemSyncDomain domain;
    CUaccessPolicyWindow window;
};

/* A new stream of the context without a handle, with one reference, in the context's list. NULL
 * when host memory is out. */
struct sim_stream *sim_stream_new(CUcontext ctx, enum sim_stream_role role, unsigned int flags);

/* cuStreamCreateWithPriority in a context: the priority is clamped. CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_stream_create(CUcontext ctx, unsigned int flags, int priority, CUstream *ret_stream);

/* The stream of a handle. NULL and CU_STREAM_LEGACY are the current context's default stream; NULL
 * with `ptsz` and CU_STREAM_PER_THREAD are the calling thread's. CUDA_ERROR_INVALID_HANDLE for a
 * handle that is not live, CUDA_ERROR_INVALID_CONTEXT for a default stream without a context, or
 * the context's sticky error. */
CUresult sim_stream_resolve(CUstream handle, bool ptsz, struct sim_stream **ret_stream);

/* The stream's context; its id, never used twice. */
CUcontext sim_stream_ctx(const struct sim_stream *stream);
unsigned long long sim_stream_id(const struct sim_stream *stream);

/* True if work given to the stream is being captured now. */
bool sim_stream_is_capturing(const struct sim_stream *stream);

/* Takes a reference; drops one, and frees the stream with the last. */
struct sim_stream *sim_stream_ref(struct sim_stream *stream);
void sim_stream_unref(struct sim_stream *stream);

/* Ends the stream: nothing more may be submitted to it. Gives up the handle and the context's
 * reference. The stream is in no capture: callers take it out first (sim_capture_leave()). */
void sim_stream_retire(struct sim_stream *stream);

/* Removes the stream from its context's list if it has ended and nothing is pending. Called when
 * its last item is complete. */
void sim_stream_settle(struct sim_stream *stream);

/* True if the legacy stream and this one wait for each other. */
bool sim_stream_is_blocking(const struct sim_stream *stream);

/* True if work is pending; for a legacy stream, also if work of the blocking streams is. */
bool sim_stream_is_busy(const struct sim_stream *stream);

/* The device its work runs on. */
int sim_stream_device(const struct sim_stream *stream);
