#include "sim/driver/memory/block.h"

#include <stdlib.h>

static struct sim_rangemap blocks;

struct sim_block *sim_block_new(enum sim_block_kind kind, uint64_t start, uint64_t range,
                                uint64_t size)
{
    struct sim_block *block = calloc(1, sizeof(*block));

    if (block == NULL) {
        return NULL;
    }
    block->range.start = start;
    block->range.size = range;
    block->size = size;
    block->kind = kind;
    block->id = sim_buffer_id();
    sim_rangemap_insert(&blocks, &block->range);
    return block;
}

void sim_block_delete(struct sim_block *block)
{
    sim_rangemap_remove(&blocks, &block->range);
    free(block);
}

void sim_block_shrink(struct sim_block *block, uint64_t bytes)
{
    sim_rangemap_remove(&blocks, &block->range);
    block->range.start += bytes;
    block->range.size -= bytes;
    block->span -= bytes;
    sim_rangemap_insert(&blocks, &block->range);
}

struct sim_block *sim_block_find(uint64_t address)
{
    return (struct sim_block *)sim_rangemap_find(&blocks, address);
}

struct sim_block *sim_block_from(uint64_t address)
{
    return (struct sim_block *)sim_rangemap_from(&blocks, address);
}

bool sim_block_is_host(const struct sim_block *block)
{
    return block->kind == SIM_BLOCK_MANAGED || block->kind == SIM_BLOCK_HOST ||
           block->kind == SIM_BLOCK_REGISTERED;
}
