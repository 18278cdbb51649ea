/* Checks if a chunk may be taken from under its blocks. The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "pool/vm_ops.h"

struct spw_extent;
struct spw_backing;

/* True if the chunk of granules [first, last), under `block`, may go to a tier: it is whole and not
 * part of a move, and all extents that share it may go there. */
bool spw_pool_movable_chunk(const struct spw_backing *backing, const struct spw_extent *block,
                            size_t first, size_t last, enum spw_tier to);
