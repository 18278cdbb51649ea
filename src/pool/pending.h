/* Pending memory: learns from fences which device work is complete, and makes the memory idle.
 *
 * The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>

#include "common/err.h"

struct spw_pool;
struct spw_stream_queue;

/* Query the fences of one queue, or of every queue except `except` (may be NULL), and make idle
 * what is complete. With `record`, a fence is recorded first for work that none covers. The second
 * one also ends moves whose copies are done, and gives up at so many queues that still wait, of
 * which it looks at others the next time. */
void spw_pool_poll_queue(struct spw_pool *pool, struct spw_stream_queue *queue, bool record);
void spw_pool_poll_queues(struct spw_pool *pool, const struct spw_stream_queue *except,
                          bool record);

/* The same with `record`, but gives up sooner. */
void spw_pool_poll_some_queues(struct spw_pool *pool, const struct spw_stream_queue *except);

/* True if work is pending that spw_pool_wait_for_fence can wait for. */
bool spw_pool_has_pending(const struct spw_pool *pool);

/* Blocks until one pending fence has completed, or for a short time only where there is another way
 * to get memory (`briefly`); the lock is released meanwhile. SPW_E_NO_MEMORY when nothing is
 * pending, or the backend's error: then every queue was polled once more. */
enum spw_err spw_pool_wait_for_fence(struct spw_pool *pool, bool briefly);
