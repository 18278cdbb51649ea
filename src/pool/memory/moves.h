/* The end of a move: it gives its chunks, pins and fences back.
 *
 * The caller holds the pool's lock, or is the only user of the pool. */
#pragma once

#include <stddef.h>

#include "common/err.h"

struct spw_move;
struct spw_pool;

/* Queries a fence of a move; NULL counts as complete. Drops a complete fence and sets it to
 * NULL. */
enum spw_err spw_pool_move_query(struct spw_pool *pool, void **fence);

/* Query the copies of one part, and of all parts. */
enum spw_err spw_pool_move_query_part(struct spw_pool *pool, struct spw_move *move, size_t part);
enum spw_err spw_pool_move_query_all(struct spw_pool *pool, struct spw_move *move);

/* Gives the chunks and pins of a move back if it is over and its copies are done. SPW_E_AGAIN when
 * the copies are not done. The second function does so for every move. */
enum spw_err spw_pool_move_end_if_finished(struct spw_pool *pool, struct spw_move *move);
void spw_pool_move_end_finished(struct spw_pool *pool);

/* Gives the chunks and pins of every move back in any state; all device work must be complete. */
void spw_pool_move_drop_all(struct spw_pool *pool);
