/* Attributes of live blocks: the priority, and reasons why a block must not move.
 *
 * Attributes belong to the block, not to its addresses. They end when the block is freed. If a
 * granule is shared by several blocks and one of them is fixed, the granule is not moved. Part of
 * pool.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_pool;

/* Reasons why a block must not move. Several may apply at once. */
enum spw_fixed_reason {
    SPW_FIXED_BY_PROGRAM = 1,   /* the program requested it, and may undo it */
    SPW_FIXED_BY_PLACEMENT = 2, /* a placement requested it */
    SPW_FIXED_SHARED = 4,       /* its physical memory is exported or registered */
    SPW_FIXED_BY_GRAPH = 8,     /* a copy or fill of an executable graph names the block */
    SPW_FIXED_FOR_LAUNCH = 16,  /* a launch of a graph that names the block is about to begin */
    SPW_NAMED_BY_GRAPH = 32     /* not a reason to stay: an executable graph names the block */
};

struct spw_block_attributes {
    uint8_t fix, unfix; /* reasons to add, and reasons to remove; enum spw_fixed_reason */
    bool prioritize;    /* set `priority`, which is 0 at first; blocks of higher priority stay on
                           the device longer */
    int32_t priority;
};

/* Sets the attributes of every live block with a byte in [address, address + bytes). If a block
 * becomes fixed, the current moves leave it out; if it has already moved, it stays in its new
 * place. Returns the number of blocks. Takes the pool's lock. */
size_t spw_pool_set_attributes(struct spw_pool *pool, uint64_t address, uint64_t bytes,
                               const struct spw_block_attributes *attributes);

/* Sets the attributes of the block that begins at an address. Returns false if there is none. Takes
 * the lock. */
bool spw_pool_set_attributes_of(struct spw_pool *pool, uint64_t address,
                                const struct spw_block_attributes *attributes);
