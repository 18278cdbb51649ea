/* Finds the block that contains an address, which may be inside the block.
 *
 * A table has one entry for each granule of the arena: the block that covers the granule's first
 * byte, and a list of the blocks that begin inside the granule. Blocks are numbers that the caller
 * chooses. Only the parts of the tables for existing blocks are ever touched. No locking: the
 * caller holds the access log's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_block_range {
    uint64_t address, end;
    uint32_t next_in_granule; /* next block that begins in the granule; 0: none */
};

struct spw_block_index {
    uint64_t base, bytes; /* the arena */
    unsigned granule_shift;
    uint32_t *covers;               /* by granule: block that covers its first byte; 0: none */
    uint32_t *begins;               /* by granule: first block that begins in it; 0: none */
    struct spw_block_range *blocks; /* by block number */
    uint32_t most;                  /* length of `blocks` */
};

/* Block numbers are 1 to most - 1; granule_bytes is a power of two. False when the process has no
 * memory. */
bool spw_migrate_block_index_init(struct spw_block_index *index, uint64_t base, uint64_t bytes,
                                  uint64_t granule_bytes, uint32_t most);
void spw_migrate_block_index_fini(struct spw_block_index *index);

/* Adds a block, which must be in the arena and overlap no other block. */
void spw_migrate_block_index_put(struct spw_block_index *index, uint32_t block, uint64_t address,
                                 uint64_t bytes);

/* Removes a block that was put. */
void spw_migrate_block_index_remove(struct spw_block_index *index, uint32_t block);

/* True when the address is in the arena. */
static inline bool spw_migrate_block_index_contains(const struct spw_block_index *index,
                                                    uint64_t address)
{
    return address - index->base < index->bytes;
}

/* Number of the granule of an address of the arena. */
static inline size_t spw_migrate_block_index_granule(const struct spw_block_index *index,
                                                     uint64_t address)
{
    return (size_t)((address - index->base) >> index->granule_shift);
}

/* The block that contains an address of the arena; 0: none. */
uint32_t spw_migrate_block_index_find(const struct spw_block_index *index, uint64_t address);

/* Some block that overlaps [address, end) of the arena; 0: none. */
uint32_t spw_migrate_block_index_overlap(const struct spw_block_index *index, uint64_t address,
                                         uint64_t end);
