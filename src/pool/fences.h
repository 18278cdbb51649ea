/* Fences for callers of the pool, to observe the progress of the device.
 *
 * Recording and querying cost one driver call each, and do not change the pool. Each function
 * except spw_pool_fence_wait takes the pool's lock. Part of pool.h. */
#pragma once

#include "common/err.h"

struct spw_pool;
struct spw_stream;

/* Records a fence behind all work submitted to `stream`, which must exist during the call. If
 * `stream` is NULL, records a fence behind all work submitted to the device. Returns SPW_E_AGAIN if
 * no fence can be recorded now. The caller must pass *ret_fence to spw_pool_fence_drop. */
enum spw_err spw_pool_fence_record(struct spw_pool *pool, const struct spw_stream *stream,
                                   void **ret_fence);

/* Returns SPW_OK if the device has passed the fence, SPW_E_AGAIN if not. */
enum spw_err spw_pool_fence_query(struct spw_pool *pool, void *fence);

/* Waits until the device has passed the fence or the driver fails. There is no time limit. No
 * lock. */
enum spw_err spw_pool_fence_wait(struct spw_pool *pool, void *fence);

/* Gives a fence back, complete or not. */
void spw_pool_fence_drop(struct spw_pool *pool, void *fence);
