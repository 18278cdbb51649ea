/* The order of work: when freed memory may be used again. It does not know chunks.
 *
 *   stream_queue  the frees of each stream, and the progress of the device */

/* Stream queues: the order of freed memory, with one queue for each stream.
 *
 * Every free gets a number from one clock of the pool. The `seq` of a queue is the number of its
 * last free. A fence that is recorded on the stream covers every free so far. When the fence has
 * completed, or when the program itself has waited for the stream, `done` rises to the last number
 * covered. Fences are recorded only on demand, so a program that uses one stream records none.
 *
 * Queue SPW_STREAM_QUEUE_IDLE has memory without pending work. Queue SPW_STREAM_QUEUE_ALL has the
 * order of frees without a stream (cuMemFree); its fences cover all work submitted to the device.
 *
 * When a stream no longer exists, its queue is reused for another stream. Numbers only rise, so a
 * pair of queue and number stays valid forever.
 *
 * A program may have tens of thousands of streams. Only the end of a context iterates over all
 * queues. All other iterations use lists: of the queues with pending work, of the queues with
 * fences, and of the queues that can be reused. An empty queue occupies about 1 KiB. Not
 * thread-safe: the caller holds the pool's lock. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/likely.h"
#include "common/map.h"
#include "pool/extents/extent.h"
#include "pool/extents/shelf.h"
#include "pool/vm_ops.h"

enum { SPW_STREAM_QUEUE_IDLE, SPW_STREAM_QUEUE_ALL, SPW_STREAM_QUEUE_FIRST_STREAM };
enum { SPW_STREAM_QUEUE_FENCES = 32 };

struct spw_fence_record {
    void *fence;
    uint64_t seq; /* the fence covers all frees of its queue up to this number */
};

/* Lists of queues. Queues are added at the end. */
enum spw_queue_list_kind {
    SPW_QUEUES_BUSY,   /* queues with fences, or with frees that are not known to be complete */
    SPW_QUEUES_FENCED, /* queues with fences */
    SPW_QUEUES_BOUND,  /* queues of a thread's own stream; the end of such a stream is not
                          reported */
    SPW_QUEUES_VACANT,
    SPW_QUEUES_LISTS
};

struct spw_queue_list {
    struct spw_stream_queue *first, *last;
    uint32_t count;
};

struct spw_queue_link {
    struct spw_stream_queue *prev, *next;
};

struct spw_stream_queue {
    uint32_t number;
    struct spw_stream stream;
    uint64_t owner; /* number of the thread that may record fences, if the stream is bound to a
                       thread */
    bool retired;   /* the handle of the stream no longer exists */
    bool vacant;    /* retired and without pending work: may be used for another stream */
    uint32_t users; /* number of requests in progress that use the queue and may wait without the
                       pool's lock */
    uint64_t seq, fenced, done;
    uint64_t unfenced_bytes;                                 /* bytes freed since the newest
                                                                fence */
    struct spw_fence_record fences[SPW_STREAM_QUEUE_FENCES]; /* a ring, with the oldest at
                                                                `first` */
    unsigned first, count;
    struct spw_age_list extents; /* free extents of this queue, in ascending order of seq */
    struct spw_shelf shelves[SPW_HEAP_COUNT];
    struct spw_queue_link links[SPW_QUEUES_LISTS];
    uint8_t listed; /* bits of the lists that contain the queue */
};

enum { SPW_STREAM_QUEUE_CACHE = 64 };

struct spw_stream_queues {
    struct spw_stream_queue **by_number;
    uint32_t count, capacity;
    uint32_t streams;      /* number of queues of streams that exist now */
    uint64_t clock;        /* number of the last free on any queue */
    uint32_t waiters;      /* number of threads that took a fence out of its queue and wait for
                              it */
    pthread_cond_t waited; /* signalled when a thread has waited for a fence */
    uint32_t pressure;     /* number of the next frees that get an early fence, because memory was
                              short */
    struct spw_stream_queue *cache[SPW_STREAM_QUEUE_CACHE]; /* by stream id */
    struct spw_map by_stream;                               /* queues of existing streams */
    struct spw_queue_list lists[SPW_QUEUES_LISTS];
    uint64_t visits; /* number of queues visited in iterations; for tests */
    struct spw_vm *vm;
};

/* Creates the two queues that always exist. After SPW_E_METADATA_NOMEM nothing is allocated. */
enum spw_err spw_pool_stream_queues_init(struct spw_stream_queues *queues, struct spw_vm *vm);

/* Frees every record. With `drop`, first gives the fences back to the backend. */
void spw_pool_stream_queues_fini(struct spw_stream_queues *queues, bool drop);

/* The slow half of spw_pool_stream_queue_of. */
struct spw_stream_queue *spw_pool_stream_queue_enter(struct spw_stream_queues *queues,
                                                     const struct spw_stream *stream);

/* Returns the queue of a stream, which is created at first use; NULL if the process has no
 * memory. */
static inline struct spw_stream_queue *spw_pool_stream_queue_of(struct spw_stream_queues *queues,
                                                                const struct spw_stream *stream)
{
    struct spw_stream_queue *queue = queues->cache[stream->id % SPW_STREAM_QUEUE_CACHE];

    return queue != NULL && queue->stream.id == stream->id
               ? queue
               : spw_pool_stream_queue_enter(queues, stream);
}

/* Returns the queue of a stream; NULL if the stream has none yet. */
struct spw_stream_queue *spw_pool_stream_queue_known(const struct spw_stream_queues *queues,
                                                     uint64_t stream_id);

/* Adds a queue to a list. The queue must not be in the list. */
void spw_pool_stream_queue_list(struct spw_stream_queues *queues, struct spw_stream_queue *queue,
                                enum spw_queue_list_kind kind);

/* Return the first queue of a list, and the queue behind `queue`; NULL at the end. */
static inline struct spw_stream_queue *
spw_pool_stream_queue_first(const struct spw_stream_queues *queues, enum spw_queue_list_kind kind)
{
    return queues->lists[kind].first;
}

static inline struct spw_stream_queue *
spw_pool_stream_queue_next(struct spw_stream_queues *queues, const struct spw_stream_queue *queue,
                           enum spw_queue_list_kind kind)
{
    queues->visits++;
    return queue->links[kind].next;
}

/* Moves a queue to the end of a list. The queue must be in the list. */
void spw_pool_stream_queue_rotate(struct spw_stream_queues *queues, struct spw_stream_queue *queue,
                                  enum spw_queue_list_kind kind);

/* Records a free on a queue: raises its `seq` to the current number of the clock. */
static inline void spw_pool_stream_queue_stamp(struct spw_stream_queues *queues,
                                               struct spw_stream_queue *queue)
{
    queue->seq = queues->clock;
    if (SPW_UNLIKELY((queue->listed & 1u << SPW_QUEUES_BUSY) == 0)) {
        spw_pool_stream_queue_list(queues, queue, SPW_QUEUES_BUSY);
    }
}

/* Returns the newest pending fence of a queue that has one. */
static inline void *spw_pool_stream_queue_newest(const struct spw_stream_queue *queue)
{
    return queue->fences[(queue->first + queue->count - 1) % SPW_STREAM_QUEUE_FENCES].fence;
}

static inline struct spw_stream_queue *
spw_pool_stream_queue_idle(const struct spw_stream_queues *queues)
{
    return queues->by_number[SPW_STREAM_QUEUE_IDLE];
}

static inline struct spw_stream_queue *
spw_pool_stream_queue_all(const struct spw_stream_queues *queues)
{
    return queues->by_number[SPW_STREAM_QUEUE_ALL];
}

/* Returns true if free number `seq` of queue `number` is known to be complete. */
static inline bool spw_pool_stream_queue_passed(const struct spw_stream_queues *queues,
                                                uint32_t number, uint64_t seq)
{
    return number == SPW_STREAM_QUEUE_IDLE || seq <= queues->by_number[number]->done;
}

/* Records a fence that covers all frees of the queue so far, unless there is one. If the stream no
 * longer exists, or is bound to another thread, the fence covers the whole device. Returns
 * SPW_E_AGAIN while a capture forbids a fence. */
enum spw_err spw_pool_stream_queue_fence(struct spw_stream_queues *queues,
                                         struct spw_stream_queue *queue);

/* Raises `done` to free number `clock`, and drops the fences up to `done`. Called after the program
 * has waited for the queue's stream or for the whole device. Returns true if `done` rose. */
bool spw_pool_stream_queue_synchronized(struct spw_stream_queues *queues,
                                        struct spw_stream_queue *queue, uint64_t clock);

/* Queries the pending fences, the oldest first, and raises `done`. Returns true if `done` rose. */
bool spw_pool_stream_queue_poll(struct spw_stream_queues *queues, struct spw_stream_queue *queue);

/* Takes the oldest pending fence of some queue out of that queue, so that the caller can wait for
 * it without the lock. The caller must then call spw_pool_stream_queue_waited. Returns the queue;
 * NULL if no fence is pending. */
struct spw_stream_queue *spw_pool_stream_queue_take_pending(struct spw_stream_queues *queues,
                                                            struct spw_fence_record *ret_record);

/* Ends the wait for a fence. Unless `completed`, the fence stays pending. */
void spw_pool_stream_queue_waited(struct spw_stream_queues *queues, struct spw_stream_queue *queue,
                                  struct spw_fence_record record, bool completed);

/* Retires a queue. The handle of its stream no longer exists. */
void spw_pool_stream_queue_retire(struct spw_stream_queues *queues, struct spw_stream_queue *queue);

/* Frees the memory that a queue without extents does not need. Makes the queue vacant if its stream
 * no longer exists and no work or request refers to it. */
void spw_pool_stream_queue_collect(struct spw_stream_queues *queues,
                                   struct spw_stream_queue *queue);
