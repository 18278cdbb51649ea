#include "tier_fixture.h"

#include <stdio.h>
#include <string.h>

#include "migrate/learn/access_log.h"
#include "migrate/move/barrier.h"

struct tier_fixture tier;

static bool may_move(void)
{
    return tier.may_move;
}

struct spw_host_limit tier_host_room(void)
{
    tier.asked++;
    return (struct spw_host_limit){.bytes = tier.room, .bound = SPW_HOST_BOUND_GROUP};
}

static void label(uint32_t site, char *text, size_t capacity)
{
    snprintf(text, capacity, "site %u", site);
}

static void moved(int ordinal, const struct spw_migrate_switched *switched)
{
    assert_int_equal(ordinal, 3);
    assert_int_equal(switched->granule_bytes, GRANULE);
    tier.closed_ns += switched->closed_ns;
    tier.moved_to[tier.moved++ % 16] = switched->places[0].granule;
}

struct spw_migrate_config tier_usual(void)
{
    return (struct spw_migrate_config){.counters = &tier.pool.counters,
                                       .ordinal = 3,
                                       .limit = {(uint64_t)HOST * GRANULE, SPW_HOST_BOUND_OPTION},
                                       .move_wait_ns = WAIT_NS,
                                       .may_move = may_move,
                                       .describe = label,
                                       .moved = moved};
}

void tier_open(struct spw_migrate_config config)
{
    memset(&tier, 0, sizeof(tier));
    atomic_store(&spw_migrate_access_log_count, 0);
    tier.may_move = true;
    tier.site = 7;
    spw_migrate_barrier_reset();
    spw_migrate_barrier_arm();
    pool_open_as(&tier.pool, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                                       .arena_bytes = UINT64_C(2048) * GRANULE,
                                                       .limit_bytes = (uint64_t)DEVICE * GRANULE,
                                                       .accounts = tier.accounts,
                                                       .host_untried = true});
    tier.pool.vm.immediate = true;
    config.pool = tier.pool.pool;
    assert_int_equal(spw_migrate_create(&config, &tier.tier), SPW_OK);
}

void tier_close(void)
{
    fake_vm_complete(&tier.pool.vm);
    spw_migrate_give_up(tier.tier);
    spw_migrate_destroy(tier.tier);
    assert_int_equal(atomic_load(&spw_migrate_access_log_count), 0);
    pool_close(&tier.pool);
}

/* Allocates as the program's thread does: from the pool, and when that refuses from the tier. */
enum spw_err tier_try_request(const struct spw_request *request, uint64_t *ret_address)
{
    struct spw_result result = {0};
    enum spw_err err = spw_pool_alloc(tier.pool.pool, request, &result);

    if (err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY) {
        err = spw_migrate_alloc(tier.tier, request, err, &result);
    }
    if (err == SPW_OK) {
        spw_migrate_allocated(tier.tier, result.address, request->bytes, request->site);
    }
    *ret_address = result.address;
    pool_check(&tier.pool);
    return err;
}

enum spw_err tier_try(uint64_t granules, uint64_t *ret_address)
{
    const struct spw_request request = {
        .bytes = granules * GRANULE, .stream = &stream_a, .site = tier.site, .may_move = true};

    return tier_try_request(&request, ret_address);
}

uint64_t tier_take(uint64_t granules)
{
    uint64_t address = 0;

    assert_int_equal(tier_try(granules, &address), SPW_OK);
    return address;
}

void tier_give(uint64_t address)
{
    spw_migrate_freed(tier.tier, address);
    pool_free(&tier.pool, address, &stream_a);
}

static uint64_t value_of(int block)
{
    return 1000 + 10 * (uint64_t)block;
}

void tier_fill(int first, int end)
{
    for (int i = first; i < end; i++) {
        tier.blocks[i] = tier_take(BLOCK);
        fake_vm_write(&tier.pool.vm, tier.blocks[i], BLOCK * GRANULE, value_of(i));
    }
}

/* Fills the device. Since then so many other blocks came and went. */
void tier_fill_and_age(int frees)
{
    tier_fill(0, BLOCKS - 1);
    for (int i = 0; i < frees; i++) {
        tier_give(tier_take(1));
    }
    tier_fill(BLOCKS - 1, BLOCKS);
}

uint64_t tier_on_host(void)
{
    return spw_counter_get(&tier.pool.counters.host_used_bytes) / GRANULE;
}

bool tier_is_on_host(int block)
{
    size_t count = fake_vm_on_host(&tier.pool.vm, tier.blocks[block], BLOCK * GRANULE);

    assert_true(count == 0 || count == BLOCK);
    assert_int_equal(
        fake_vm_differs(&tier.pool.vm, tier.blocks[block], BLOCK * GRANULE, value_of(block)), 0);
    return count != 0;
}

/* Checks that blocks [0, count) are on the host, and no others. */
void tier_expect_evicted(int count)
{
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(tier_is_on_host(i), i < count);
    }
}
