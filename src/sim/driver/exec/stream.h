/* Streams: queues of operations that run in order.
 *
 * A stream is reference counted: it outlives its handle while work is pending or fences refer to
 * the stream. The position of a stream is given by the number of submitted items and the number of
 * completed items.
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
    SIM_STREAM_INTERNAL,   /* no handle; orders the events of cuCtxRecordEvent */
};

struct sim_stream {
    struct sim_stream *next;        /* in its context's list */
    struct sim_stream **place;      /* the pointer to this stream in that list */
    struct sim_stream *active_next; /* list of the streams with pending items (schedule.c) */
    struct sim_stream *active_prev;
    CUcontext ctx;         /* NULL: ended, and nothing is pending */
    CUstream handle;       /* NULL once destroyed, and for the default streams */
    unsigned long long id; /* cuStreamGetId: never used twice */
    unsigned int refs;
    bool retired; /* ended; leaves the context's list once nothing is pending */
    enum sim_stream_role role;
    unsigned int flags; /* CUstream_flags */
    int priority;
    uint64_t thread; /* PER_THREAD: its thread */

    struct sim_item *first; /* pending items, oldest first */
    struct sim_item *last;
    uint64_t submitted;
    uint64_t completed;
    uint64_t metered_ns; /* estimated end of the submitted work (meter.h) */

    /* While capturing: the nodes that the next node depends on. Owned by stream_capture.c. */
    struct sim_capture *capture;
    struct sim_node **tail;
    size_t tail_count;
    CUgraphNode *tail_handles; /* the result of cuStreamGetCaptureInfo; NULL: none */

    CUsynchronizationPolicy sync_policy; /* attributes: stored, without effect */
    CUlaunchMemSyncDomainMap domain_map;
    CUlaunchMemSyncDomain domain;
    CUaccessPolicyWindow window;
};

/* Creates a stream of the context, without a handle and with one reference, and adds it to the
 * context's list. NULL if host memory is exhausted. */
struct sim_stream *sim_stream_new(CUcontext ctx, enum sim_stream_role role, unsigned int flags);

/* cuStreamCreateWithPriority in a context: the priority is clamped. CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_stream_create(CUcontext ctx, unsigned int flags, int priority, CUstream *ret_stream);

/* The stream of a handle. CU_STREAM_LEGACY, and NULL without `ptsz`, are the current context's
 * default stream. CU_STREAM_PER_THREAD, and NULL with `ptsz`, are the calling thread's default
 * stream. CUDA_ERROR_INVALID_HANDLE for a handle that is not live, CUDA_ERROR_INVALID_CONTEXT for a
 * default stream without a context, or the context's sticky error. */
CUresult sim_stream_resolve(CUstream handle, bool ptsz, struct sim_stream **ret_stream);

/* The stream's context, and the stream's id, which is never used twice. */
CUcontext sim_stream_ctx(const struct sim_stream *stream);
unsigned long long sim_stream_id(const struct sim_stream *stream);

/* True if the stream is capturing. */
bool sim_stream_is_capturing(const struct sim_stream *stream);

/* Take and drop a reference; the last one frees the stream. */
struct sim_stream *sim_stream_ref(struct sim_stream *stream);
void sim_stream_unref(struct sim_stream *stream);

/* Ends the stream: no more work may be submitted to it. Drops the stream's handle and the context's
 * reference to the stream. Callers remove the stream from its capture first (sim_capture_leave()).
 */
void sim_stream_retire(struct sim_stream *stream);

/* Removes the stream from its context's list if it has ended and nothing is pending. Called when
 * the stream's last item is complete. */
void sim_stream_settle(struct sim_stream *stream);

/* True if the legacy stream and this one wait for each other. */
bool sim_stream_is_blocking(const struct sim_stream *stream);

/* True if the stream has pending work. A legacy stream is also busy if a blocking stream has
 * pending work. */
bool sim_stream_is_busy(const struct sim_stream *stream);

/* The device that the stream's work runs on. */
int sim_stream_device(const struct sim_stream *stream);
