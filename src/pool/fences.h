/* Fences for callers of the pool, which show the progress of the device.
 *
 * Recording and querying cost one driver call each and do not change the pool. Each function but
 * spw_pool_fence_wait takes the pool's lock. Part of pool.h. */
#pragma once

#include "common/err.h"

struct spw_pool;
struct spw_stream;

/* Records a fence behind all work submitted to `stream`, which must exist during the call; NULL:
 * behind all work submitted to the device. SPW_E_AGAIN when no fence can be recorded now. The
 * caller gives *ret_fence back with spw_pool_fence_drop. */
enum spw_err spw_pool_fence_record(struct spw_pool *pool, const struct spw_stream *stream,
                                   void **ret_fence);

/* SPW_OK when the device has passed the fence, SPW_E_AGAIN when it has not. */
enum spw_err spw_pool_fence_query(struct spw_pool *pool, void *fence);

/* Waits, without a limit, until the device has passed the fence or the driver fails. No lock. */
enum spw_err spw_pool_fence_wait(struct spw_pool *pool, void *fence);

/* Gives a fence back, complete or not. */
void spw_pool_fence_drop(struct spw_pool *pool, void *fence);
