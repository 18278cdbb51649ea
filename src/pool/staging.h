/* Staging windows: where the new chunks of a move are mapped while they are copied to, and how a
 * move gives them back.
 *
 * The caller holds the pool's lock, or is the only user of the pool. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct spw_move;
struct spw_pool;

/* Returns the address of an item's new chunk in the move's window. */
uint64_t spw_pool_staging_address(const struct spw_pool *pool, const struct spw_move *move,
                                  size_t item);

/* Maps the new chunks of a move in its window and gives access. On failure some may be mapped. */
enum spw_err spw_pool_staging_map(struct spw_pool *pool, struct spw_move *move);

/* Queries a fence of a move; NULL counts as complete. It is dropped, and set to NULL, when it has
 * completed. */
enum spw_err spw_pool_staging_query(struct spw_pool *pool, void **fence);

/* Unmaps the window and gives back the chunks and pins of a move whose copies are done. False when
 * the backend refuses to unmap. */
bool spw_pool_staging_end(struct spw_pool *pool, struct spw_move *move);

/* Ends a move if it is over and its copies are done. SPW_E_AGAIN when they are not. The second one
 * does so for every move. */
enum spw_err spw_pool_staging_end_if_finished(struct spw_pool *pool, struct spw_move *move);
void spw_pool_staging_end_finished(struct spw_pool *pool);

/* Ends every move whatever its state; all device work must be complete. */
void spw_pool_staging_drop(struct spw_pool *pool);
