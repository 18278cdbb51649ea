#include "pool/pending.h"

#include "pool/move_end.h"
#include "pool/state.h"

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

void spw_pool_poll_queues(struct spw_pool *pool, const struct spw_stream_queue *except, bool record)
{
    spw_pool_move_end_finished(pool);
    for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < pool->queues.count; i++) {
        if (pool->queues.by_number[i] != except) {
            spw_pool_poll_queue(pool, pool->queues.by_number[i], record);
        }
    }
}

bool spw_pool_has_pending(const struct spw_pool *pool)
{
    for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < pool->queues.count; i++) {
        if (pool->queues.by_number[i]->count > 0) {
            return true;
        }
    }
    return pool->queues.waiters > 0;
}

enum spw_err spw_pool_wait_for_fence(struct spw_pool *pool, bool briefly)
{
    struct spw_fence_record record;
    struct spw_stream_queue *queue = spw_pool_stream_queue_take_pending(&pool->queues, &record);
    enum spw_err (*wait)(void *vm, void *fence);
    enum spw_err err;

    if (queue == NULL) {
        if (pool->queues.waiters == 0) {
            return SPW_E_NO_MEMORY;
        }
        spw_lock_wait(&pool->lock, &pool->waited);
        return SPW_OK;
    }
    pool->queues.waiters++;
    spw_counter_add(&pool->counters->host_waits, 1);
    wait = briefly ? pool->ops->wait_soon : pool->ops->wait_host;
    spw_unlock(&pool->lock);
    err = wait(pool->vm, record.fence);
    spw_lock(&pool->lock);
    pool->queues.waiters--;
    spw_pool_stream_queue_waited(&pool->queues, queue, record, err == SPW_OK);
    spw_pool_space_release_completed(&pool->space, queue);
    pthread_cond_broadcast(&pool->waited);
    return err;
}
