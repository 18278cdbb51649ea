/* The part of a block that a rule's `host_share` places on the host. Used by the pool, and by the
 * command's prediction. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the number of granules that a block of `bytes` has on the host, rounded to the
 * nearest. */
static inline uint64_t spw_host_share_granules(uint64_t bytes, uint32_t permille,
                                               uint64_t granule_bytes)
{
    uint64_t all = (bytes + granule_bytes - 1) / granule_bytes;
    uint64_t share = (bytes * permille / 1000 + granule_bytes / 2) / granule_bytes;

    return share < all ? share : all;
}

/* Returns true if granule `index` of a block is on the host, where `host` of the block's `count`
 * granules are on the host. These are spread evenly, and include the last granule. */
static inline bool spw_host_share_takes(size_t index, size_t host, size_t count)
{
    return (index + 1) * host / count > index * host / count;
}

/* Returns the bytes that a block has on the host. The block may end inside its last granule. */
static inline uint64_t spw_host_share_bytes(uint64_t bytes, uint32_t permille,
                                            uint64_t granule_bytes)
{
    uint64_t all = (bytes + granule_bytes - 1) / granule_bytes;
    uint64_t share = spw_host_share_granules(bytes, permille, granule_bytes);

    return share == 0 ? 0 : share * granule_bytes - (all * granule_bytes - bytes);
}
