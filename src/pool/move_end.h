/* How a move gives back what it holds.
 *
 * The caller holds the pool's lock, or is the only user of the pool. */
#pragma once

#include <stddef.h>

#include "common/err.h"

struct spw_move;
struct spw_pool;

/* Queries a fence of a move; NULL counts as complete. It is dropped, and set to NULL, when it has
 * completed. */
enum spw_err spw_pool_move_query(struct spw_pool *pool, void **fence);

/* Likewise for the copies of one part, and for all. */
enum spw_err spw_pool_move_query_part(struct spw_pool *pool, struct spw_move *move, size_t part);
enum spw_err spw_pool_move_query_all(struct spw_pool *pool, struct spw_move *move);

/* Gives back the chunks and pins of a move if it is over and its copies are done. SPW_E_AGAIN when
 * they are not. The second one does so for every move. */
enum spw_err spw_pool_move_end_if_finished(struct spw_pool *pool, struct spw_move *move);
void spw_pool_move_end_finished(struct spw_pool *pool);

/* Does so for every move whatever its state; all device work must be complete. */
void spw_pool_move_drop_all(struct spw_pool *pool);
