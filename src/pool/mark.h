/* Marks: set behind everything that was submitted to the device, or to one of its streams, and
 * asked whether it has come so far. They cost two calls of the driver each and change nothing.
 *
 * Locking: each function takes the pool's lock. */
#pragma once

#include "common/err.h"
#include "pool/pool.h"

/* `stream`: behind what was submitted to it, by a caller for whom it is there for so long; NULL:
 * behind everything. SPW_E_AGAIN when no mark can be set now. It is given back by
 * spw_pool_fence_drop.
 */
enum spw_err spw_pool_fence_record(struct spw_pool *pool, const struct spw_stream *stream,
                                   void **ret_mark);

/* SPW_OK when the device has passed it, SPW_E_AGAIN when not. */
enum spw_err spw_pool_fence_query(struct spw_pool *pool, void *mark);
void spw_pool_fence_drop(struct spw_pool *pool, void *mark);
