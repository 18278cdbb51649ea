/* Streams: queues of operations that run in order.
 *
 * A stream outlives its handle while work is pending and while fences refer to it, so it is counted
 * by reference. Its position in time is two numbers: how many items were submitted, and how many
 * are complete.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/context.h"
#include "sim/driver/work.h"

struct sim_capture;
struct sim_item;
struct sim_node;

enum sim_stream_role {
    SIM_STREAM_USER,
    SIM_STREAM_LEGACY,     /* the context's NULL stream */
    SIM_STREAM_PER_THREAD, /* a thread's default stream */
    SIM_STREAM_INTERNAL,   /* no handle: order of cuCtxRecordEvent */
};

struct sim_stream {
    struct sim_stream *next;        /* of its context */
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

/* Takes a reference; drops one, and frees the stream with the last. */
struct sim_stream *sim_stream_ref(struct sim_stream *stream);
void sim_stream_unref(struct sim_stream *stream);

/* The stream ends: nothing more is submitted to it; gives up the handle and the context's
 * reference. A capture it takes part in is invalidated. */
void sim_stream_retire(struct sim_stream *stream);

/* Removes the stream from its context's list if it has ended and nothing is pending. Called when
 * its last item is complete. */
void sim_stream_settle(struct sim_stream *stream);

/* Whether the legacy stream and this one wait for each other. */
bool sim_stream_is_blocking(const struct sim_stream *stream);

/* Whether work is pending; for a legacy stream also work of the blocking streams it waits for. */
bool sim_stream_is_busy(const struct sim_stream *stream);

/* The device its work runs on. */
int sim_stream_device(const struct sim_stream *stream);
