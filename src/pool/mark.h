/* Marks: set behind everything that was submitted to the device, and asked whether it has come so
 * far. They cost two calls of the driver each and change nothing.
 *
 * Locking: each function takes the pool's lock. */
#pragma once

#include "base/err.h"
#include "pool/pool.h"

/* SPW_E_AGAIN when no mark can be set now. It is given back by spw_pool_unmark. */
enum spw_err spw_pool_mark(struct spw_pool *pool, void **ret_mark);

/* SPW_OK when the device has passed it, SPW_E_AGAIN when not. */
enum spw_err spw_pool_passed(struct spw_pool *pool, void *mark);
void spw_pool_unmark(struct spw_pool *pool, void *mark);
