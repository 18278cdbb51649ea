/* Moves: content gets other chunks under the same addresses. It does not know allocation.
 *
 *   movable  which chunks may be taken from under their blocks
 *   scan     the state of granules, for the choice of moves
 *   move     begins moves, copies and ends them
 *   commit   the last step of a move: maps the new chunks in place of the old ones
 *   swap     releases chunks under blocks, and creates them again
 *   export   chunks that other processes can map */

/* Checks whether a chunk may be taken away from under its blocks. The caller holds the pool's
 * lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "pool/vm_ops.h"

struct spw_extent;
struct spw_backing;

/* Returns true if the chunk of granules [first, last), under `block`, may move to a tier. None of
 * its granules may be broken or part of a move, and all extents on it must be allowed there. */
bool spw_pool_movable_chunk(const struct spw_backing *backing, const struct spw_extent *block,
                            size_t first, size_t last, enum spw_tier to);
