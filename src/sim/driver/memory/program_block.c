#include "sim/driver/memory/program_block.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "sim/driver/core/control.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/rangemap.h"

static struct sim_rangemap blocks;
static struct sim_range *spare; /* the record of the next block; NULL: none */
static bool reported;

typedef void hand_over_function(void (*take)(unsigned long long address, unsigned long long bytes));

/* The source of reports that spillway_sim_blocks() named. */
static struct {
    const _Atomic uint64_t *count;
    hand_over_function *hand_over;
} source;

static void forget(struct sim_range *block)
{
    sim_rangemap_remove(&blocks, block);
    free(spare);
    spare = block;
}

static struct sim_range *new_record(void)
{
    struct sim_range *record = spare != NULL ? spare : malloc(sizeof(*record));

    spare = NULL;
    return record;
}

/* Adds a block. Drops the blocks that the new block overlaps, because they must have been freed. */
static void remember(CUdeviceptr address, size_t bytes)
{
    struct sim_range *old = sim_rangemap_from(&blocks, address);
    struct sim_range *block;

    while (old != NULL && old->start < address + bytes) {
        forget(old);
        old = sim_rangemap_from(&blocks, address);
    }
    block = new_record();
    if (block != NULL) {
        *block = (struct sim_range){.start = address, .size = bytes};
        sim_rangemap_insert(&blocks, block);
    }
}

static void forget_at(CUdeviceptr address)
{
    struct sim_range *block = sim_rangemap_find(&blocks, address);

    if (block != NULL && block->start == address) {
        forget(block);
    }
}

static void take(unsigned long long address, unsigned long long bytes)
{
    reported = true;
    if (bytes > 0) {
        remember(address, bytes);
    } else {
        forget_at(address);
    }
}

static void take_all(void)
{
    if (source.count != NULL && atomic_load_explicit(source.count, memory_order_relaxed) > 0) {
        source.hand_over(take);
    }
}

SIM_EXPORT void spillway_sim_block(unsigned long long address, unsigned long long bytes)
{
    sim_lock();
    take_all(); /* earlier reports, of memory that the new block may overlap */
    take(address, bytes);
    sim_unlock();
}

SIM_EXPORT void spillway_sim_blocks(const _Atomic uint64_t *count, hand_over_function *hand_over)
{
    sim_lock();
    source.count = count;
    source.hand_over = hand_over;
    take_all();
    sim_unlock();
}

static const struct sim_range *find(CUdeviceptr address)
{
    take_all();
    return sim_rangemap_find(&blocks, address);
}

size_t sim_program_block_rest(CUdeviceptr address)
{
    const struct sim_range *block = find(address);

    return block != NULL ? sim_range_end(block) - address : 0;
}

size_t sim_program_block_bytes(CUdeviceptr address)
{
    const struct sim_range *block = find(address);

    return block != NULL ? block->size : 0;
}

bool sim_program_block_any(void)
{
    take_all();
    return reported;
}
