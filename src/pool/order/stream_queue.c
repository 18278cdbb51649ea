#include "pool/order/stream_queue.h"

#include "common/grow.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Returns a number for the calling thread. Unlike the result of pthread_self, no later thread gets
 * the same number. */
static uint64_t thread_number(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t number __attribute__((tls_model("initial-exec")));

    if (number == 0) {
        number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    }
    return number;
}

/* ---- lists ---- */

void spw_pool_stream_queue_list(struct spw_stream_queues *queues, struct spw_stream_queue *queue,
                                enum spw_queue_list_kind kind)
{
    struct spw_queue_list *list = &queues->lists[kind];

    queue->links[kind] = (struct spw_queue_link){.prev = list->last};
    if (list->last != NULL) {
        list->last->links[kind].next = queue;
    } else {
        list->first = queue;
    }
    list->last = queue;
    list->count++;
    queue->listed |= (uint8_t)(1u << kind);
}

static void unlist(struct spw_stream_queues *queues, struct spw_stream_queue *queue,
                   enum spw_queue_list_kind kind)
{
    struct spw_queue_list *list = &queues->lists[kind];
    const struct spw_queue_link *link = &queue->links[kind];

    if (link->prev != NULL) {
        link->prev->links[kind].next = link->next;
    } else {
        list->first = link->next;
    }
    if (link->next != NULL) {
        link->next->links[kind].prev = link->prev;
    } else {
        list->last = link->prev;
    }
    list->count--;
    queue->listed &= (uint8_t) ~(1u << kind);
}

/* Adds a queue to a list, or removes it from the list. */
static void set_listed(struct spw_stream_queues *queues, struct spw_stream_queue *queue,
                       enum spw_queue_list_kind kind, bool listed)
{
    bool is_listed = (queue->listed & 1u << kind) != 0;

    if (listed && !is_listed) {
        spw_pool_stream_queue_list(queues, queue, kind);
    } else if (!listed && is_listed) {
        unlist(queues, queue, kind);
    }
}

void spw_pool_stream_queue_rotate(struct spw_stream_queues *queues, struct spw_stream_queue *queue,
                                  enum spw_queue_list_kind kind)
{
    unlist(queues, queue, kind);
    spw_pool_stream_queue_list(queues, queue, kind);
}

/* Updates the lists after a change of a queue's fences, `seq` or `done`. */
static void update_lists(struct spw_stream_queues *queues, struct spw_stream_queue *queue)
{
    set_listed(queues, queue, SPW_QUEUES_BUSY, queue->count > 0 || queue->seq > queue->done);
    set_listed(queues, queue, SPW_QUEUES_FENCED, queue->count > 0);
}

/* ---- life ---- */

static struct spw_stream_queue *add_queue(struct spw_stream_queues *queues,
                                          const struct spw_stream *stream)
{
    struct spw_stream_queue *queue;

    if (queues->count == queues->capacity) {
        uint32_t capacity = queues->capacity == 0 ? 16 : queues->capacity * 2;

        if (!SPW_RESIZE(&queues->by_number, capacity)) {
            return NULL;
        }
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

enum spw_err spw_pool_stream_queues_init(struct spw_stream_queues *queues, struct spw_vm *vm)
{
    const struct spw_stream nobody = {.id = SPW_STREAM_ALL};

    memset(queues, 0, sizeof(*queues));
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
            queues->vm->ops->drop(queues->vm, oldest(queue)->fence);
            pop_oldest(queue);
        }
        for (int heap = 0; heap < SPW_HEAP_COUNT; heap++) {
            free(queue->shelves[heap].bins);
        }
        free(queue);
    }
    free(queues->by_number);
    free(queues->by_stream.slots);
    memset(queues, 0, sizeof(*queues));
}

struct spw_stream_queue *spw_pool_stream_queue_known(const struct spw_stream_queues *queues,
                                                     uint64_t stream_id)
{
    return spw_map_get(&queues->by_stream, stream_id);
}

/* Returns true if no memory, fence or request waits for a queue's work. */
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

/* Returns a queue that may be used for another stream: a vacant one, or a quiet one of a thread's
 * own stream. Such a stream ends with its thread, and its end is not reported. If the stream still
 * exists, it gets another queue at its next use. Each call checks only some of the queues; the next
 * call checks others. */
static struct spw_stream_queue *find_reusable(struct spw_stream_queues *queues)
{
    enum { LOOKED_AT = 16 };

    if (queues->lists[SPW_QUEUES_VACANT].first != NULL) {
        return queues->lists[SPW_QUEUES_VACANT].first;
    }
    for (uint32_t i = 0; i < LOOKED_AT && i < queues->lists[SPW_QUEUES_BOUND].count; i++) {
        struct spw_stream_queue *queue = queues->lists[SPW_QUEUES_BOUND].first;

        queues->visits++;
        spw_pool_stream_queue_rotate(queues, queue, SPW_QUEUES_BOUND);
        if (is_quiet(queue)) {
            return queue;
        }
    }
    return NULL;
}

/* Adds a vacant queue. */
static struct spw_stream_queue *add_vacant(struct spw_stream_queues *queues,
                                           const struct spw_stream *stream)
{
    struct spw_stream_queue *queue = add_queue(queues, stream);

    if (queue != NULL) {
        queue->vacant = true;
        spw_pool_stream_queue_list(queues, queue, SPW_QUEUES_VACANT);
    }
    return queue;
}

static struct spw_stream_queue *open_queue(struct spw_stream_queues *queues,
                                           const struct spw_stream *stream)
{
    struct spw_stream_queue *queue = find_reusable(queues);

    if (queue == NULL) {
        queue = add_vacant(queues, stream);
    }
    if (queue == NULL || !spw_map_put(&queues->by_stream, stream->id, queue)) {
        return NULL;
    }
    if (!queue->vacant) {
        (void)spw_map_take(&queues->by_stream, queue->stream.id);
    }
    leave_cache(queues, queue);
    queues->streams += queue->vacant;
    set_listed(queues, queue, SPW_QUEUES_VACANT, false);
    set_listed(queues, queue, SPW_QUEUES_BOUND, stream->thread_bound);
    queue->stream = *stream;
    queue->owner = thread_number();
    queue->retired = queue->vacant = false;
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

/* Returns true if the calling thread can record a fence on the queue's own stream. */
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
    err = queues->vm->ops->fence(queues->vm, stream, &record.fence);
    if (err != SPW_OK) {
        return err;
    }
    if (queue->count == SPW_STREAM_QUEUE_FENCES) {
        /* The ring is full. The new fence covers all frees of the newest one, which is dropped. */
        queues->vm->ops->drop(queues->vm, newest(queue)->fence);
        queue->count--;
    }
    queue->count++;
    *newest(queue) = record;
    update_lists(queues, queue);
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
        queues->vm->ops->drop(queues->vm, oldest(queue)->fence);
        pop_oldest(queue);
    }
    update_lists(queues, queue);
    return queue->done > before;
}

bool spw_pool_stream_queue_poll(struct spw_stream_queues *queues, struct spw_stream_queue *queue)
{
    uint64_t before = queue->done;

    while (queue->count > 0 && queues->vm->ops->query(queues->vm, oldest(queue)->fence) == SPW_OK) {
        completed(queue, oldest(queue)->seq);
        queues->vm->ops->drop(queues->vm, oldest(queue)->fence);
        pop_oldest(queue);
    }
    update_lists(queues, queue);
    return queue->done > before;
}

struct spw_stream_queue *spw_pool_stream_queue_take_pending(struct spw_stream_queues *queues,
                                                            struct spw_fence_record *ret_record)
{
    struct spw_stream_queue *chosen = spw_pool_stream_queue_all(queues);

    /* The queue with the most freed memory behind its oldest fence would be the best choice.
     * However, finding it requires an iteration over all queues, and near the limit each queue is
     * waited for in turn. */
    if (chosen->count == 0) {
        chosen = queues->lists[SPW_QUEUES_FENCED].first;
    }
    if (chosen != NULL) {
        *ret_record = *oldest(chosen);
        pop_oldest(chosen);
        update_lists(queues, chosen);
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
        update_lists(queues, queue);
        return;
    }
    if (is_complete) {
        completed(queue, record.seq);
        update_lists(queues, queue);
    }
    /* Even if this fence is incomplete, a newer fence covers the frees. */
    queues->vm->ops->drop(queues->vm, record.fence);
}

void spw_pool_stream_queue_retire(struct spw_stream_queues *queues, struct spw_stream_queue *queue)
{
    queue->retired = true;
    set_listed(queues, queue, SPW_QUEUES_BOUND, false);
}

void spw_pool_stream_queue_collect(struct spw_stream_queues *queues, struct spw_stream_queue *queue)
{
    if (queue->number < SPW_STREAM_QUEUE_FIRST_STREAM) {
        return;
    }
    for (int heap = 0; queue->extents.oldest == NULL && heap < SPW_HEAP_COUNT; heap++) {
        spw_pool_shelf_trim(&queue->shelves[heap]);
    }
    if (!queue->retired || queue->vacant || !is_quiet(queue)) {
        return;
    }
    leave_cache(queues, queue);
    (void)spw_map_take(&queues->by_stream, queue->stream.id);
    queue->vacant = true;
    spw_pool_stream_queue_list(queues, queue, SPW_QUEUES_VACANT);
    queues->streams--;
}
