#include "pool/space/pending.h"

#include "pool/alloc/state.h"
#include "pool/memory/moves.h"

/* The most waiting queues of one walk: POLLED_MOST when memory is short. */
enum { POLLED_MOST = 256, POLLED_SOME = 32 };

void spw_pool_poll_queue(struct spw_pool *pool, struct spw_stream_queue *queue, bool record)
{
    if (queue->done == queue->seq) {
        return;
    }
    if (record) {
        (void)spw_pool_stream_queue_fence(&pool->queues, queue);
    }
    if (spw_pool_stream_queue_poll(&pool->queues, queue)) {
        spw_pool_space_release_completed(&pool->space, queue);
    }
}

/* Polls busy queues until `most` of them still wait. The others do not count: their work is
 * complete, and they leave the list. */
static void poll_queues(struct spw_pool *pool, const struct spw_stream_queue *except, bool record,
                        uint32_t most)
{
    struct spw_stream_queues *queues = &pool->queues;
    struct spw_stream_queue *queue = spw_pool_stream_queue_first(queues, SPW_QUEUES_BUSY), *next;

    for (uint32_t left = queues->lists[SPW_QUEUES_BUSY].count; left > 0 && most > 0; left--) {
        next = spw_pool_stream_queue_next(queues, queue, SPW_QUEUES_BUSY);
        if (queue != except) {
            spw_pool_poll_queue(pool, queue, record);
        }
        if ((queue->listed & 1u << SPW_QUEUES_BUSY) != 0) {
            spw_pool_stream_queue_rotate(queues, queue, SPW_QUEUES_BUSY);
            most--;
        }
        queue = next;
    }
}

void spw_pool_poll_queues(struct spw_pool *pool, const struct spw_stream_queue *except, bool record)
{
    spw_pool_move_end_finished(&pool->backing);
    poll_queues(pool, except, record, POLLED_MOST);
}

void spw_pool_poll_some_queues(struct spw_pool *pool, const struct spw_stream_queue *except)
{
    spw_pool_move_end_finished(&pool->backing);
    poll_queues(pool, except, /* record */ true, POLLED_SOME);
}

/* Polls every queue, before a request is refused: any stream may have completed. A fence recorded
 * on an idle stream is complete at the second poll. */
static void poll_all_queues(struct spw_pool *pool)
{
    for (int look = 0; look < 2; look++) {
        poll_queues(pool, NULL, /* record */ look == 0, UINT32_MAX);
    }
}

bool spw_pool_has_pending(const struct spw_pool *pool)
{
    return pool->queues.lists[SPW_QUEUES_FENCED].count > 0 || pool->queues.waiters > 0;
}

enum spw_err spw_pool_wait_for_fence(struct spw_pool *pool, bool briefly)
{
    struct spw_fence_record record;
    struct spw_stream_queue *queue = spw_pool_stream_queue_take_pending(&pool->queues, &record);
    enum spw_err (*wait)(struct spw_vm * vm, void *fence);
    enum spw_err err;

    if (queue == NULL) {
        if (pool->queues.waiters == 0) {
            poll_all_queues(pool);
            return SPW_E_NO_MEMORY;
        }
        spw_lock_wait(&pool->lock, &pool->waited);
        return SPW_OK;
    }
    pool->queues.waiters++;
    spw_counter_add(&pool->counters->host_waits, 1);
    wait = briefly ? pool->vm->ops->wait_soon : pool->vm->ops->wait_host;
    spw_unlock(&pool->lock);
    err = wait(pool->vm, record.fence);
    spw_lock(&pool->lock);
    pool->queues.waiters--;
    spw_pool_stream_queue_waited(&pool->queues, queue, record, err == SPW_OK);
    spw_pool_space_release_completed(&pool->space, queue);
    if (err != SPW_OK) {
        poll_all_queues(pool);
    }
    pthread_cond_broadcast(&pool->waited);
    return err;
}
