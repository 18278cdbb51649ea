#include "pool/space/pending.h"

#include "pool/memory/moves.h"
#include "pool/space/space.h"
#include "system/lock.h"

/* The most queues with incomplete work that one iteration visits: POLLED_MOST if memory is short,
 * otherwise POLLED_SOME. */
enum { POLLED_MOST = 256, POLLED_SOME = 32 };

void spw_pool_poll_queue(struct spw_space *space, struct spw_stream_queue *queue, bool record)
{
    if (queue->done == queue->seq) {
        return;
    }
    if (record) {
        (void)spw_pool_stream_queue_fence(space->queues, queue);
    }
    if (spw_pool_stream_queue_poll(space->queues, queue)) {
        spw_pool_space_release_completed(space, queue);
    }
}

/* Polls busy queues until `most` of them have turned out to be incomplete. The other queues do not
 * count: their work is complete, so they leave the list. */
static void poll_queues(struct spw_space *space, const struct spw_stream_queue *except, bool record,
                        uint32_t most)
{
    struct spw_stream_queues *queues = space->queues;
    struct spw_stream_queue *queue = spw_pool_stream_queue_first(queues, SPW_QUEUES_BUSY), *next;

    for (uint32_t left = queues->lists[SPW_QUEUES_BUSY].count; left > 0 && most > 0; left--) {
        next = spw_pool_stream_queue_next(queues, queue, SPW_QUEUES_BUSY);
        if (queue != except) {
            spw_pool_poll_queue(space, queue, record);
        }
        if ((queue->listed & 1u << SPW_QUEUES_BUSY) != 0) {
            spw_pool_stream_queue_rotate(queues, queue, SPW_QUEUES_BUSY);
            most--;
        }
        queue = next;
    }
}

void spw_pool_poll_queues(struct spw_space *space, const struct spw_stream_queue *except,
                          bool record)
{
    spw_pool_move_end_finished(space->backing);
    poll_queues(space, except, record, POLLED_MOST);
}

void spw_pool_poll_some_queues(struct spw_space *space, const struct spw_stream_queue *except)
{
    spw_pool_move_end_finished(space->backing);
    poll_queues(space, except, /* record */ true, POLLED_SOME);
}

/* Polls every queue before a request is refused, because the work of any stream may have completed.
 * A fence that is recorded on an idle stream is complete at the second poll. */
static void poll_all_queues(struct spw_space *space)
{
    for (int look = 0; look < 2; look++) {
        poll_queues(space, NULL, /* record */ look == 0, UINT32_MAX);
    }
}

bool spw_pool_has_pending(const struct spw_stream_queues *queues)
{
    return queues->lists[SPW_QUEUES_FENCED].count > 0 || queues->waiters > 0;
}

enum spw_err spw_pool_wait_for_fence(struct spw_space *space, struct spw_lock *lock, bool briefly)
{
    struct spw_vm *vm = space->backing->vm;
    struct spw_fence_record record;
    struct spw_stream_queue *queue = spw_pool_stream_queue_take_pending(space->queues, &record);
    enum spw_err (*wait)(struct spw_vm * vm, void *fence);
    enum spw_err err;

    if (queue == NULL) {
        if (space->queues->waiters == 0) {
            poll_all_queues(space);
            return SPW_E_NO_MEMORY;
        }
        spw_lock_wait(lock, &space->queues->waited);
        return SPW_OK;
    }
    space->queues->waiters++;
    spw_counter_add(&space->backing->counters->host_waits, 1);
    wait = briefly ? vm->ops->wait_soon : vm->ops->wait_host;
    spw_unlock(lock);
    err = wait(vm, record.fence);
    spw_lock(lock);
    space->queues->waiters--;
    spw_pool_stream_queue_waited(space->queues, queue, record, err == SPW_OK);
    spw_pool_space_release_completed(space, queue);
    if (err != SPW_OK) {
        poll_all_queues(space);
    }
    pthread_cond_broadcast(&space->queues->waited);
    return err;
}
