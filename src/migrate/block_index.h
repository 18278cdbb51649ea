/* Places: which block lies at an address, for addresses that are inside of blocks as well.
 *
 * A table of the arena's granules; each names the block that covers its first byte and lists those
 * that begin in it. Blocks are numbers of the caller's. Memory is touched where blocks are. Caller
 * locks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_place {
    uint64_t address, end;
    uint32_t beside; /* the next one that begins in the granule */
};

struct spw_block_index {
    uint64_t base, bytes;
    unsigned granule_shift;
    uint32_t *covers, *begins; /* by granule: a block, 0: none */
    struct spw_place *blocks;  /* by number */
    uint32_t most;
};

/* Blocks are numbered from 1 and below `most`. False when the process has no memory. */
bool spw_migrate_block_index_init(struct spw_block_index *places, uint64_t base, uint64_t bytes,
                                  uint64_t granule_bytes, uint32_t most);
void spw_migrate_block_index_fini(struct spw_block_index *places);

/* Enters a block that lies in the arena and touches no other. */
void spw_migrate_block_index_put(struct spw_block_index *places, uint32_t block, uint64_t address,
                                 uint64_t bytes);
void spw_migrate_block_index_remove(struct spw_block_index *places, uint32_t block);

static inline bool spw_migrate_block_index_own(const struct spw_block_index *places,
                                               uint64_t address)
{
    return address - places->base < places->bytes;
}

static inline size_t spw_migrate_block_index_granule(const struct spw_block_index *places,
                                                     uint64_t address)
{
    return (size_t)((address - places->base) >> places->granule_shift);
}

/* The block that contains an address of the arena; 0: none. */
uint32_t spw_migrate_block_index_find(const struct spw_block_index *places, uint64_t address);

/* A block that touches [address, end) of the arena; 0: none. */
uint32_t spw_migrate_block_index_touch(const struct spw_block_index *places, uint64_t address,
                                       uint64_t end);
