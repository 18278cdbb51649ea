/* Applies placements to blocks: checks the limit of an account, and updates the account's figures
 * when blocks begin, move and end. The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pool/request.h"
#include "pool/vm_ops.h"

struct spw_extent;
struct spw_figures;
struct spw_pool;

/* Returns true if the placement's limit leaves room for a block of `bytes` on the device. */
bool spw_pool_placement_allows(const struct spw_figures *figures,
                               const struct spw_pool_placement *placement, uint64_t bytes);

/* Sets the attributes of a new block and enters it in its account. */
void spw_pool_placement_begin(struct spw_pool *pool, struct spw_extent *block,
                              const struct spw_pool_placement *placement);

/* Ends the placement of a block: subtracts the block from the bytes placed on the host, and from
 * its account, if it has one. */
void spw_pool_placement_end(struct spw_figures *figures, const struct spw_extent *block);

/* Counts that the chunk at `address` has moved to a tier, for the blocks on it that have an
 * account. */
void spw_pool_placement_moved(struct spw_pool *pool, uint64_t address, uint64_t bytes,
                              enum spw_tier to);
