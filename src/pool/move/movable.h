/* Moves: content gets other chunks under the same addresses. It does not know allocation.
 *
 *   movable  which chunks may be taken from under their blocks
 *   scan     the state of granules, for the choice of moves
 *   move     begins moves, copies and ends them
 *   commit   the last step of a move: the new chunks in place of the old ones
 *   swap     releases chunks under blocks, and creates them anew
 *   export   chunks that other processes can map */

/* Checks if a chunk may be taken from under its blocks. The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "pool/vm_ops.h"

struct spw_extent;
struct spw_backing;

/* True if the chunk of granules [first, last), under `block`, may go to a tier: none of its
 * granules is broken or part of a move, and all extents on it may go there. */
bool spw_pool_movable_chunk(const struct spw_backing *backing, const struct spw_extent *block,
                            size_t first, size_t last, enum spw_tier to);
