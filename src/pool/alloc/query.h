/* Look-ups by address, for other parts of the pool. The caller holds the pool's lock. */
#pragma once

#include <stdint.h>

struct spw_extent;
struct spw_pool;

/* Returns the extent that contains `address`; NULL if there is none. `address` must be in memory of
 * the pool. */
struct spw_extent *spw_pool_extent(const struct spw_pool *pool, uint64_t address);
