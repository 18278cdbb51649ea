#include "pool/stream_queue.h"

#include <stdlib.h>
#include <string.h>

static struct spw_stream_queue *lane_add(struct spw_stream_queues *lanes,
                                         const struct spw_stream *stream)
{
    struct spw_stream_queue *lane;

    if (lanes->count == lanes->capacity) {
        uint32_t capacity = lanes->capacity == 0 ? 16 : lanes->capacity * 2;
        struct spw_stream_queue **grown =
            realloc(lanes->by_number, capacity * sizeof(struct spw_stream_queue *));

        if (grown == NULL) {
            return NULL;
        }
        lanes->by_number = grown;
        lanes->capacity = capacity;
    }
    lane = calloc(1, sizeof(*lane));
    if (lane == NULL) {
        return NULL;
    }
    lane->number = lanes->count;
    lane->stream = *stream;
    lane->owner = pthread_self();
    lanes->by_number[lanes->count++] = lane;
    return lane;
}

enum spw_err spw_pool_stream_queues_init(struct spw_stream_queues *lanes,
                                         const struct spw_vm_ops *ops, void *vm)
{
    const struct spw_stream nobody = {.id = SPW_STREAM_ALL};

    memset(lanes, 0, sizeof(*lanes));
    lanes->ops = ops;
    lanes->vm = vm;
    if (lane_add(lanes, &nobody) == NULL || lane_add(lanes, &nobody) == NULL) {
        spw_pool_stream_queues_fini(lanes, false);
        return SPW_E_METADATA_NOMEM;
    }
    return SPW_OK;
}

static struct spw_fence_record *oldest(struct spw_stream_queue *lane)
{
    return &lane->fences[lane->first];
}

static struct spw_fence_record *newest(struct spw_stream_queue *lane)
{
    return &lane->fences[(lane->first + lane->count - 1) % SPW_STREAM_QUEUE_FENCES];
}

static void pop_oldest(struct spw_stream_queue *lane)
{
    lane->first = (lane->first + 1) % SPW_STREAM_QUEUE_FENCES;
    lane->count--;
}

void spw_pool_stream_queues_fini(struct spw_stream_queues *lanes, bool drop)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct spw_stream_queue *lane = lanes->by_number[i];

        while (drop && lane->count > 0) {
            lanes->ops->drop(lanes->vm, oldest(lane)->fence);
            pop_oldest(lane);
        }
        free(lane);
    }
    free(lanes->by_number);
    memset(lanes, 0, sizeof(*lanes));
}

struct spw_stream_queue *spw_pool_stream_queue_known(const struct spw_stream_queues *lanes,
                                                     uint64_t stream_id)
{
    for (uint32_t i = SPW_STREAM_QUEUE_FIRST_STREAM; i < lanes->count; i++) {
        if (!lanes->by_number[i]->vacant && lanes->by_number[i]->stream.id == stream_id) {
            return lanes->by_number[i];
        }
    }
    return NULL;
}

static struct spw_stream_queue *lane_open(struct spw_stream_queues *lanes,
                                          const struct spw_stream *stream)
{
    struct spw_stream_queue *lane;

    for (uint32_t i = SPW_STREAM_QUEUE_FIRST_STREAM; i < lanes->count; i++) {
        lane = lanes->by_number[i];
        if (lane->vacant) {
            lane->stream = *stream;
            lane->owner = pthread_self();
            lane->retired = lane->vacant = false;
            lanes->streams++;
            return lane;
        }
    }
    lane = lane_add(lanes, stream);
    lanes->streams += lane != NULL;
    return lane;
}

struct spw_stream_queue *spw_pool_stream_queue_enter(struct spw_stream_queues *lanes,
                                                     const struct spw_stream *stream)
{
    struct spw_stream_queue *lane = spw_pool_stream_queue_known(lanes, stream->id);

    if (lane == NULL) {
        lane = lane_open(lanes, stream);
    }
    if (lane != NULL) {
        lanes->cache[stream->id % SPW_STREAM_QUEUE_CACHE] = lane;
    }
    return lane;
}

/* Whether a fence can be recorded on the lane's own stream by the calling thread. */
static bool can_name(const struct spw_stream_queue *lane)
{
    if (lane->number == SPW_STREAM_QUEUE_ALL || lane->retired) {
        return false;
    }
    return !lane->stream.thread_bound || pthread_equal(lane->owner, pthread_self());
}

enum spw_err spw_pool_stream_queue_fence(struct spw_stream_queues *lanes,
                                         struct spw_stream_queue *lane)
{
    struct spw_fence_record record = {.seq = lane->seq};
    const struct spw_stream *stream;
    enum spw_err err;

    if (lane->number == SPW_STREAM_QUEUE_IDLE || lane->fenced == lane->seq ||
        lane->done == lane->seq) {
        return SPW_OK;
    }
    stream = can_name(lane) ? &lane->stream : &spw_pool_stream_queue_all(lanes)->stream;
    err = lanes->ops->fence(lanes->vm, stream, &record.fence);
    if (err != SPW_OK) {
        return err;
    }
    if (lane->count == SPW_STREAM_QUEUE_FENCES) {
        /* The ring is full: the new fence covers what the newest one did. */
        lanes->ops->drop(lanes->vm, newest(lane)->fence);
        lane->count--;
    }
    lane->count++;
    *newest(lane) = record;
    lane->fenced = lane->seq;
    lane->unfenced_bytes = 0;
    return SPW_OK;
}

static void completed(struct spw_stream_queue *lane, uint64_t seq)
{
    if (seq > lane->done) {
        lane->done = seq;
    }
}

bool spw_pool_stream_queue_synchronized(struct spw_stream_queues *lanes,
                                        struct spw_stream_queue *lane, uint64_t clock)
{
    uint64_t before = lane->done;

    completed(lane, clock < lane->seq ? clock : lane->seq);
    while (lane->count > 0 && oldest(lane)->seq <= lane->done) {
        lanes->ops->drop(lanes->vm, oldest(lane)->fence);
        pop_oldest(lane);
    }
    return lane->done > before;
}

bool spw_pool_stream_queue_poll(struct spw_stream_queues *lanes, struct spw_stream_queue *lane)
{
    uint64_t before = lane->done;

    while (lane->count > 0 && lanes->ops->query(lanes->vm, oldest(lane)->fence) == SPW_OK) {
        completed(lane, oldest(lane)->seq);
        lanes->ops->drop(lanes->vm, oldest(lane)->fence);
        pop_oldest(lane);
    }
    return lane->done > before;
}

struct spw_stream_queue *spw_pool_stream_queue_take_pending(struct spw_stream_queues *lanes,
                                                            struct spw_fence_record *ret_record)
{
    struct spw_stream_queue *chosen = NULL;

    /* Of all lanes the one with most freed memory behind its oldest fence would be best; which that
     * is costs a walk, and near the limit every lane is waited for in turn anyway. */
    for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < lanes->count && chosen == NULL; i++) {
        if (lanes->by_number[i]->count > 0) {
            chosen = lanes->by_number[i];
        }
    }
    if (chosen != NULL) {
        *ret_record = *oldest(chosen);
        pop_oldest(chosen);
    }
    return chosen;
}

void spw_pool_stream_queue_waited(struct spw_stream_queues *lanes, struct spw_stream_queue *lane,
                                  struct spw_fence_record record, bool is_complete)
{
    if (!is_complete && lane->count == 0 && record.seq > lane->done) {
        lane->first = (lane->first + SPW_STREAM_QUEUE_FENCES - 1) % SPW_STREAM_QUEUE_FENCES;
        lane->count++;
        *oldest(lane) = record;
        return;
    }
    if (is_complete) {
        completed(lane, record.seq);
    }
    lanes->ops->drop(lanes->vm, record.fence); /* if incomplete, a newer one covers it or did */
}

void spw_pool_stream_queue_collect(struct spw_stream_queues *lanes, struct spw_stream_queue *lane)
{
    struct spw_stream_queue **cached = &lanes->cache[lane->stream.id % SPW_STREAM_QUEUE_CACHE];

    if (!lane->retired || lane->vacant || lane->count > 0 || lane->done < lane->seq ||
        lane->extents.oldest != NULL) {
        return;
    }
    if (*cached == lane) {
        *cached = NULL;
    }
    lane->vacant = true;
    lanes->streams--;
}
