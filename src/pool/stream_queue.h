/* Lanes: the order of freed memory, one lane per stream.
 *
 * Every free has a number, from one clock for the pool; `seq` of a lane is the number of its last
 * one. A fence recorded on the stream covers every free so far, and when it has completed, `done`
 * rises to the number it covers; so it does when the program itself has waited for the stream.
 * Fences are recorded only when somebody wants to know, so a program on one stream makes
 * none. Lane SPW_STREAM_QUEUE_IDLE holds memory with no pending work; lane SPW_STREAM_QUEUE_ALL is
 * the order of frees without a stream (cuMemFree): its fences cover everything submitted to the
 * device.
 *
 * A lane whose stream is gone is used again for another stream. Since numbers only rise, a pair of
 * lane and number stays true for ever. Caller holds the pool's lock. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/bins.h"
#include "pool/extent.h"
#include "pool/vm_ops.h"
#include "pool/placement.h"

enum { SPW_STREAM_QUEUE_IDLE, SPW_STREAM_QUEUE_ALL, SPW_STREAM_QUEUE_FIRST_STREAM };
enum { SPW_STREAM_QUEUE_FENCES = 32 };

/* Small blocks live apart from large ones, so that a long-lived small block does not hold down a
 * granule in the middle of large ones. Blocks that a policy places on the host have a heap of their
 * own, whose chunks are the host's; and so have those of each region that a policy names. */
enum spw_heap_class {
    SPW_HEAP_SMALL,
    SPW_HEAP_LARGE,
    SPW_HEAP_HOST,
    SPW_HEAP_REGION, /* the first of SPW_REGIONS */
    SPW_HEAP_COUNT = SPW_HEAP_REGION + SPW_REGIONS
};

struct spw_fence_record {
    void *fence;
    uint64_t seq; /* of its lane: completes every free up to here */
};

struct spw_stream_queue {
    uint32_t number;
    struct spw_stream stream;
    pthread_t owner; /* of a thread-bound stream: who may record on it */
    bool retired;    /* the stream's handle is gone */
    bool vacant;     /* retired, nothing pending: may serve another stream */
    uint64_t seq, fenced, done;
    uint64_t unfenced_bytes;                                 /* freed since the newest fence */
    struct spw_fence_record fences[SPW_STREAM_QUEUE_FENCES]; /* a ring, oldest at `first` */
    unsigned first, count;
    struct spw_age_list extents; /* free extents of this lane, by rising seq */
    struct spw_bins bins[SPW_HEAP_COUNT];
};

enum { SPW_STREAM_QUEUE_CACHE = 64 };

struct spw_stream_queues {
    struct spw_stream_queue **by_number;
    uint32_t count, capacity;
    uint32_t streams; /* lanes of streams that are there now */
    uint64_t clock;   /* number of the last free on any lane */
    uint32_t waiters; /* threads that wait for a fence they took out of its lane */
    struct spw_stream_queue *cache[SPW_STREAM_QUEUE_CACHE]; /* by stream id */
    const struct spw_vm_ops *ops;
    void *vm;
};

/* Begins with the two lanes that are always there. SPW_E_METADATA_NOMEM leaves nothing behind. */
enum spw_err spw_pool_stream_queues_init(struct spw_stream_queues *lanes,
                                         const struct spw_vm_ops *ops, void *vm);

/* Frees every record. With `drop`, fences are given back to the seam first. */
void spw_pool_stream_queues_fini(struct spw_stream_queues *lanes, bool drop);

/* The slow half of spw_pool_stream_queue_of. */
struct spw_stream_queue *spw_pool_stream_queue_enter(struct spw_stream_queues *lanes,
                                                     const struct spw_stream *stream);

/* The lane of a stream, created at first sight; NULL when the host has no memory. */
static inline struct spw_stream_queue *spw_pool_stream_queue_of(struct spw_stream_queues *lanes,
                                                                const struct spw_stream *stream)
{
    struct spw_stream_queue *lane = lanes->cache[stream->id % SPW_STREAM_QUEUE_CACHE];

    return lane != NULL && lane->stream.id == stream->id
               ? lane
               : spw_pool_stream_queue_enter(lanes, stream);
}

/* The lane of a stream that was seen before; NULL when it was not. */
struct spw_stream_queue *spw_pool_stream_queue_known(const struct spw_stream_queues *lanes,
                                                     uint64_t stream_id);

/* The newest pending fence of a lane that has one. */
static inline void *spw_pool_stream_queue_newest(const struct spw_stream_queue *lane)
{
    return lane->fences[(lane->first + lane->count - 1) % SPW_STREAM_QUEUE_FENCES].fence;
}

static inline struct spw_stream_queue *
spw_pool_stream_queue_idle(const struct spw_stream_queues *lanes)
{
    return lanes->by_number[SPW_STREAM_QUEUE_IDLE];
}

static inline struct spw_stream_queue *
spw_pool_stream_queue_all(const struct spw_stream_queues *lanes)
{
    return lanes->by_number[SPW_STREAM_QUEUE_ALL];
}

/* Whether the free number `seq` of lane `number` has completed, as far as is known. */
static inline bool spw_pool_stream_queue_passed(const struct spw_stream_queues *lanes,
                                                uint32_t number, uint64_t seq)
{
    return number == SPW_STREAM_QUEUE_IDLE || seq <= lanes->by_number[number]->done;
}

/* Records a fence that covers every free of the lane so far, unless one does already. For a stream
 * that cannot be named any more, or only by another thread, one that covers the whole device.
 * SPW_E_AGAIN while a capture forbids it. */
enum spw_err spw_pool_stream_queue_fence(struct spw_stream_queues *lanes,
                                         struct spw_stream_queue *lane);

/* The program has waited for the lane's stream, or the whole device, after free number `clock`:
 * raises `done` and drops the fences that tell no more. True when it rose. */
bool spw_pool_stream_queue_synchronized(struct spw_stream_queues *lanes,
                                        struct spw_stream_queue *lane, uint64_t clock);

/* Asks the fences that are pending, oldest first, and raises `done`. True when it rose. */
bool spw_pool_stream_queue_poll(struct spw_stream_queues *lanes, struct spw_stream_queue *lane);

/* The oldest pending fence of any lane, to be waited for; NULL when nothing is pending. The record
 * is taken out of its lane: the caller waits without the lock and gives it to
 * spw_pool_stream_queue_waited. */
struct spw_stream_queue *spw_pool_stream_queue_take_pending(struct spw_stream_queues *lanes,
                                                            struct spw_fence_record *ret_record);

/* After the wait: `completed` says whether the fence has; if not, it stays pending. */
void spw_pool_stream_queue_waited(struct spw_stream_queues *lanes, struct spw_stream_queue *lane,
                                  struct spw_fence_record record, bool completed);

/* Makes the lane vacant when its stream is gone and nothing hangs on it any more. */
void spw_pool_stream_queue_collect(struct spw_stream_queues *lanes, struct spw_stream_queue *lane);
