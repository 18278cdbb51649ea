/* Attributes of live blocks: priority, and reasons why a block must not be moved.
 *
 * Attributes belong to the block, not to its addresses, and end at its free. A granule that a fixed
 * block shares with other blocks is not moved. Part of pool.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_pool;

/* Reasons why a block is never moved; several may hold at once. */
enum spw_fixed_reason {
    SPW_FIXED_BY_PROGRAM = 1,   /* the program asked for it, and may undo it */
    SPW_FIXED_BY_PLACEMENT = 2, /* a placement fixed it */
    SPW_FIXED_SHARED = 4,       /* its physical memory is exported or registered */
    SPW_FIXED_BY_GRAPH = 8,     /* copies or fills of an executable graph name it */
    SPW_FIXED_FOR_LAUNCH = 16,  /* a graph launch that names it is about to begin */
    SPW_NAMED_BY_GRAPH = 32     /* no reason to stay: an executable graph names the block */
};

struct spw_block_attributes {
    uint8_t fix, unfix; /* reasons to add and to remove, enum spw_fixed_reason */
    bool prioritize;    /* set `priority`: 0 at first; blocks of higher priority stay on the device
                           longer */
    int32_t priority;
};

/* Sets the attributes of every live block with a byte in [address, address + bytes). Moves under
 * way leave out blocks that become fixed; a block that has already moved stays in its new place.
 * Returns the number of blocks. Takes the pool's lock. */
size_t spw_pool_set_attributes(struct spw_pool *pool, uint64_t address, uint64_t bytes,
                               const struct spw_block_attributes *attributes);

/* Sets the attributes of the block that begins at an address; false if none does. Takes the
 * lock. */
bool spw_pool_set_attributes_of(struct spw_pool *pool, uint64_t address,
                                const struct spw_block_attributes *attributes);
