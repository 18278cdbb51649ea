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
 * idle whose work is complete. With `record`, first record a fence for work that has none. The
 * second function also ends moves whose copies are done. It stops after a number of queues whose
 * fences are not complete; the next call begins with other queues. */
void spw_pool_poll_queue(struct spw_space *space, struct spw_stream_queue *queue, bool record);
void spw_pool_poll_queues(struct spw_space *space, const struct spw_stream_queue *except,
                          bool record);

/* Like spw_pool_poll_queues with `record`, but stops sooner. */
void spw_pool_poll_some_queues(struct spw_space *space, const struct spw_stream_queue *except);

/* Returns true if spw_pool_wait_for_fence has pending work to wait for. */
bool spw_pool_has_pending(const struct spw_stream_queues *queues);

/* Waits until one pending fence has completed. With `briefly`, waits only a short time; this is for
 * callers that have another source of memory. Releases the pool's lock during the wait. Returns
 * SPW_E_NO_MEMORY if no work is pending; otherwise the backend's error. In both cases, every queue
 * was polled once more. */
enum spw_err spw_pool_wait_for_fence(struct spw_space *space, struct spw_lock *lock, bool briefly);
