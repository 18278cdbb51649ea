/* Treatment: what is said of blocks that live already, by the program or by what it does with them.
 *
 * It is of the block, not of its addresses: it ends when the block is freed. A granule that a fixed
 * block shares with others stays with it. Takes the pool's lock. */
#pragma once

#include <stdint.h>

#include "pool/pool.h"

/* Why a block is never moved; several reasons may hold. */
enum spw_fixed {
    SPW_FIXED_BY_PROGRAM = 1,   /* the program said so, and may take it back */
    SPW_FIXED_BY_PLACEMENT = 2, /* a rule said so */
    SPW_FIXED_SHARED = 4        /* others hold on to its physical memory: exported, registered */
};

struct spw_block_attributes {
    uint8_t fix, unfix; /* reasons to add, and to take away */
    bool prioritize;    /* set `priority`: 0 of a new block, the higher, the longer on the device */
    int32_t priority;
};

/* Treats every live block that has a byte in [address, address + bytes). A move that is under way
 * leaves out what is fixed now; where it has happened already the block stays where it is. Returns
 * how many blocks were treated. */
size_t spw_pool_set_attributes(struct spw_pool *pool, uint64_t address, uint64_t bytes,
                               const struct spw_block_attributes *attributes);
