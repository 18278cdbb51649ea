/* Pending memory: queries fences, and makes memory idle when its device work is complete.
 *
 * The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>

#include "common/err.h"

struct spw_lock;
struct spw_space;
struct spw_stream_queue;
struct spw_stream_queues;

/* Query the fences of one queue, or of every queue except `except` (may be NULL), and make memory
 * with complete work idle. With `record`, first record a fence for work without one. The second
 * function also ends moves whose copies are done. It stops after a number of queues that still
 * wait; the next call begins with others. */
void spw_pool_poll_queue(struct spw_space *space, struct spw_stream_queue *queue, bool record);
void spw_pool_poll_queues(struct spw_space *space, const struct spw_stream_queue *except,
                          bool record);

/* Like spw_pool_poll_queues with `record`, but stops sooner. */
void spw_pool_poll_some_queues(struct spw_space *space, const struct spw_stream_queue *except);

/* True if work is pending that spw_pool_wait_for_fence can wait for. */
bool spw_pool_has_pending(const struct spw_stream_queues *queues);

/* Blocks until one pending fence has completed; `briefly`, for callers with another source of
 * memory, at most for a short time. Releases the pool's lock during the wait. SPW_E_NO_MEMORY when
 * no work is pending, or the backend's error; in both cases every queue was polled once more. */
enum spw_err spw_pool_wait_for_fence(struct spw_space *space, struct spw_lock *lock, bool briefly);
