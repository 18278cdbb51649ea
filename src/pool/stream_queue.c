#include "pool/stream_queue.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A number for the calling thread, which no later thread has: pthread_self is used again. */
static uint64_t thread_number(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t number __attribute__((tls_model("initial-exec")));

    if (number == 0) {
        number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    }
    return number;
}

static struct spw_stream_queue *add_queue(struct spw_stream_queues *queues,
                                          const struct spw_stream *stream)
{
    struct spw_stream_queue *queue;

    if (queues->count == queues->capacity) {
        uint32_t capacity = queues->capacity == 0 ? 16 : queues->capacity * 2;
        struct spw_stream_queue **grown =
            realloc(queues->by_number, capacity * sizeof(struct spw_stream_queue *));

        if (grown == NULL) {
            return NULL;
        }
        queues->by_number = grown;
        queues->capacity = capacity;
    }
    queue = calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return NULL;
    }
    queue->number = queues->count;
    queue->stream = *stream;
    queue->owner = thread_number();
    queues->by_number[queues->count++] = queue;
    return queue;
}

enum spw_err spw_pool_stream_queues_init(struct spw_stream_queues *queues,
                                         const struct spw_vm_ops *ops, void *vm)
{
    const struct spw_stream nobody = {.id = SPW_STREAM_ALL};

    memset(queues, 0, sizeof(*queues));
    queues->ops = ops;
    queues->vm = vm;
    if (add_queue(queues, &nobody) == NULL || add_queue(queues, &nobody) == NULL) {
        spw_pool_stream_queues_fini(queues, false);
        return SPW_E_METADATA_NOMEM;
    }
    return SPW_OK;
}

static struct spw_fence_record *oldest(struct spw_stream_queue *queue)
{
    return &queue->fences[queue->first];
}

static struct spw_fence_record *newest(struct spw_stream_queue *queue)
{
    return &queue->fences[(queue->first + queue->count - 1) % SPW_STREAM_QUEUE_FENCES];
}

static void pop_oldest(struct spw_stream_queue *queue)
{
    queue->first = (queue->first + 1) % SPW_STREAM_QUEUE_FENCES;
    queue->count--;
}

void spw_pool_stream_queues_fini(struct spw_stream_queues *queues, bool drop)
{
    for (uint32_t i = 0; i < queues->count; i++) {
        struct spw_stream_queue *queue = queues->by_number[i];

        while (drop && queue->count > 0) {
            queues->ops->drop(queues->vm, oldest(queue)->fence);
            pop_oldest(queue);
        }
        free(queue);
    }
    free(queues->by_number);
    memset(queues, 0, sizeof(*queues));
}

struct spw_stream_queue *spw_pool_stream_queue_known(const struct spw_stream_queues *queues,
                                                     uint64_t stream_id)
{
    for (uint32_t i = SPW_STREAM_QUEUE_FIRST_STREAM; i < queues->count; i++) {
        if (!queues->by_number[i]->vacant && queues->by_number[i]->stream.id == stream_id) {
            return queues->by_number[i];
        }
    }
    return NULL;
}

/* True when nothing waits for a queue's work any more. */
static bool is_quiet(const struct spw_stream_queue *queue)
{
    return queue->count == 0 && queue->done >= queue->seq && queue->extents.oldest == NULL &&
           queue->users == 0;
}

static void leave_cache(struct spw_stream_queues *queues, const struct spw_stream_queue *queue)
{
    struct spw_stream_queue **cached = &queues->cache[queue->stream.id % SPW_STREAM_QUEUE_CACHE];

    if (*cached == queue) {
        *cached = NULL;
    }
}

/* A queue that may serve another stream: a vacant one, or a quiet one of a thread's own stream.
 * Nobody tells when such a stream ends, with its thread; if it goes on, it gets a queue again. */
static struct spw_stream_queue *find_reusable(struct spw_stream_queues *queues)
{
    struct spw_stream_queue *found = NULL;

    for (uint32_t i = SPW_STREAM_QUEUE_FIRST_STREAM; i < queues->count; i++) {
        struct spw_stream_queue *queue = queues->by_number[i];

        if (queue->vacant) {
            return queue;
        }
        if (queue->stream.thread_bound && !queue->retired && is_quiet(queue)) {
            found = queue;
        }
    }
    return found;
}

static struct spw_stream_queue *open_queue(struct spw_stream_queues *queues,
                                           const struct spw_stream *stream)
{
    struct spw_stream_queue *queue = find_reusable(queues);

    if (queue != NULL) {
        leave_cache(queues, queue);
        queues->streams += queue->vacant;
        queue->stream = *stream;
        queue->owner = thread_number();
        queue->retired = queue->vacant = false;
        return queue;
    }
    queue = add_queue(queues, stream);
    queues->streams += queue != NULL;
    return queue;
}

struct spw_stream_queue *spw_pool_stream_queue_enter(struct spw_stream_queues *queues,
                                                     const struct spw_stream *stream)
{
    struct spw_stream_queue *queue = spw_pool_stream_queue_known(queues, stream->id);

    if (queue == NULL) {
        queue = open_queue(queues, stream);
    }
    if (queue != NULL) {
        queues->cache[stream->id % SPW_STREAM_QUEUE_CACHE] = queue;
    }
    return queue;
}

/* True if the calling thread can record a fence on the queue's own stream. */
static bool can_name(const struct spw_stream_queue *queue)
{
    if (queue->number == SPW_STREAM_QUEUE_ALL || queue->retired) {
        return false;
    }
    return !queue->stream.thread_bound || queue->owner == thread_number();
}

enum spw_err spw_pool_stream_queue_fence(struct spw_stream_queues *queues,
                                         struct spw_stream_queue *queue)
{
    struct spw_fence_record record = {.seq = queue->seq};
    const struct spw_stream *stream;
    enum spw_err err;

    if (queue->number == SPW_STREAM_QUEUE_IDLE || queue->fenced == queue->seq ||
        queue->done == queue->seq) {
        return SPW_OK;
    }
    stream = can_name(queue) ? &queue->stream : &spw_pool_stream_queue_all(queues)->stream;
    err = queues->ops->fence(queues->vm, stream, &record.fence);
    if (err != SPW_OK) {
        return err;
    }
    if (queue->count == SPW_STREAM_QUEUE_FENCES) {
        /* The ring is full: the new fence covers everything that the newest one does. */
        queues->ops->drop(queues->vm, newest(queue)->fence);
        queue->count--;
    }
    queue->count++;
    *newest(queue) = record;
    queue->fenced = queue->seq;
    queue->unfenced_bytes = 0;
    return SPW_OK;
}

static void completed(struct spw_stream_queue *queue, uint64_t seq)
{
    if (seq > queue->done) {
        queue->done = seq;
    }
}

bool spw_pool_stream_queue_synchronized(struct spw_stream_queues *queues,
                                        struct spw_stream_queue *queue, uint64_t clock)
{
    uint64_t before = queue->done;

    completed(queue, clock < queue->seq ? clock : queue->seq);
    while (queue->count > 0 && oldest(queue)->seq <= queue->done) {
        queues->ops->drop(queues->vm, oldest(queue)->fence);
        pop_oldest(queue);
    }
    return queue->done > before;
}

bool spw_pool_stream_queue_poll(struct spw_stream_queues *queues, struct spw_stream_queue *queue)
{
    uint64_t before = queue->done;

    while (queue->count > 0 && queues->ops->query(queues->vm, oldest(queue)->fence) == SPW_OK) {
        completed(queue, oldest(queue)->seq);
        queues->ops->drop(queues->vm, oldest(queue)->fence);
        pop_oldest(queue);
    }
    return queue->done > before;
}

struct spw_stream_queue *spw_pool_stream_queue_take_pending(struct spw_stream_queues *queues,
                                                            struct spw_fence_record *ret_record)
{
    struct spw_stream_queue *chosen = NULL;

    /* The queue with most freed memory behind its oldest fence would be best, but finding it takes
     * a walk over all of them, and near the limit every queue is waited for in turn anyway. */
    for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < queues->count && chosen == NULL; i++) {
        if (queues->by_number[i]->count > 0) {
            chosen = queues->by_number[i];
        }
    }
    if (chosen != NULL) {
        *ret_record = *oldest(chosen);
        pop_oldest(chosen);
    }
    return chosen;
}

void spw_pool_stream_queue_waited(struct spw_stream_queues *queues, struct spw_stream_queue *queue,
                                  struct spw_fence_record record, bool is_complete)
{
    if (!is_complete && queue->count == 0 && record.seq > queue->done) {
        queue->first = (queue->first + SPW_STREAM_QUEUE_FENCES - 1) % SPW_STREAM_QUEUE_FENCES;
        queue->count++;
        *oldest(queue) = record;
        return;
    }
    if (is_complete) {
        completed(queue, record.seq);
    }
    queues->ops->drop(queues->vm, record.fence); /* if it is incomplete, a newer one covers it */
}

void spw_pool_stream_queue_collect(struct spw_stream_queues *queues, struct spw_stream_queue *queue)
{
    if (!queue->retired || queue->vacant || !is_quiet(queue)) {
        return;
    }
    leave_cache(queues, queue);
    queue->vacant = true;
    queues->streams--;
}
