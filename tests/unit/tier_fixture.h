/* A pool on the device in plain memory, full of blocks of two granules, and its host tier. There is
 * one at a time. */
#pragma once

#include "pool_fixture.h"
#include "migrate/migrate.h"

/* Granules of the device, of the host, and of a block; the number of blocks that fill the device;
 * the frees after which a block may be evicted. */
enum { DEVICE = 64, HOST = 128, BLOCK = 2, BLOCKS = DEVICE / BLOCK, COLD = 64, WAIT_NS = 1000000 };

struct tier_fixture {
    uint64_t wall; /* granules of page-locked memory at which the driver refuses more */
    struct pool_fixture pool;
    struct spw_account accounts[SPW_ACCOUNTS];
    struct spw_migrate *tier;
    uint64_t blocks[BLOCKS];
    uint32_t site; /* of the next allocations */
    bool may_move;
    uint64_t room;         /* what the machine has left of host memory */
    size_t asked;          /* how often it was asked for that */
    size_t moved;          /* migrations that were reported */
    uint64_t moved_to[16]; /* the first granule of each */
    uint64_t closed_ns;    /* the sum of what they held submissions back */
};

extern struct tier_fixture tier;

/* The usual configuration, and `host_room` for it, which answers tier.room. */
struct spw_migrate_config tier_usual(void);
struct spw_host_limit tier_host_room(void);

/* Opens the pool, whose work completes at once, and the tier. */
void tier_open(struct spw_migrate_config config);
void tier_close(void);

/* Allocates as the program's thread does: from the pool, and when that refuses from the tier. */
enum spw_err tier_try_request(const struct spw_request *request, uint64_t *ret_address);
enum spw_err tier_try(uint64_t granules, uint64_t *ret_address);
/* The same, which must succeed; and frees. */
uint64_t tier_take(uint64_t granules);
void tier_give(uint64_t address);

/* Makes the blocks [first, end), and writes to them. */
void tier_fill(int first, int end);
/* Fills the device. Since all blocks but the last were made, so many others came and went. */
void tier_fill_and_age(int frees);

/* Granules in use on the host. */
uint64_t tier_on_host(void);
/* True if a block is there as a whole. Checks its content. */
bool tier_is_on_host(int block);
/* Checks that the blocks [0, count) are there, and no others. */
void tier_expect_evicted(int count);

static inline uint64_t counter(const _Atomic uint64_t *counter)
{
    return spw_counter_get(counter);
}
