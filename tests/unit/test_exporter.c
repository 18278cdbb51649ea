/* Giving a block chunks that other processes can map, while the program runs. */
#include "migrate/exporter.h"

#include "tier_fixture.h"
#include "common/clock.h"
#include "migrate/barrier.h"

enum { MS = 1000000 };

static struct spw_exporter exporter(void)
{
    return (struct spw_exporter){.pool = tier.pool.pool,
                                 .tier = tier.tier,
                                 .counters = &tier.pool.counters,
                                 .wait_ns = WAIT_NS};
}

static uint64_t id_of(uint64_t address)
{
    struct spw_block block = {0};

    assert_true(spw_pool_find(tier.pool.pool, address, &block));
    return block.id;
}

static enum spw_err export(const struct spw_exporter *exporter, uint64_t address) {
    enum spw_err err = spw_migrate_export(exporter, address, id_of(address));

    pool_check(&tier.pool);
    return err;
}

static bool is_exported(uint64_t address)
{
    struct spw_exported_chunk chunks[8];
    uint64_t offset;

    return spw_pool_export_chunks(tier.pool.pool, address, chunks, 8, &offset) > 0;
}

/* The block keeps its address and content; submissions were held back for it. */
static void test_export(void **state)
{
    struct spw_exporter with, without;

    tier_open(tier_usual());
    with = without = exporter();
    without.tier = NULL;
    tier_fill(0, 4);
    assert_int_equal(export(&with, tier.blocks[1]), SPW_OK);
    assert_true(is_exported(tier.blocks[1]));
    assert_false(tier_is_on_host(1));
    assert_true(counter(&tier.pool.counters.closed_ns) > 0);
    assert_int_equal(atomic_load(&spw_migrate_barrier.closed), 0);
    assert_int_equal(export(&without, tier.blocks[2]), SPW_OK);
    assert_true(is_exported(tier.blocks[2]));
    assert_false(is_exported(tier.blocks[0]));
    assert_int_equal(export(&with, tier.blocks[1]), SPW_OK); /* it is done already */
    tier_close();
}

/* Another block than the one that is meant. */
static void test_another_block(void **state)
{
    struct spw_exporter with;

    tier_open(tier_usual());
    with = exporter();
    tier_fill(0, 1);
    assert_int_equal(spw_migrate_export(&with, tier.blocks[0], id_of(tier.blocks[0]) + 1),
                     SPW_E_NOT_OURS);
    assert_false(is_exported(tier.blocks[0]));
    assert_int_equal(counter(&tier.pool.counters.closed_ns), 0);
    tier_close();
}

/* On a full device other blocks make room for the new chunks. */
static void test_full_device(void **state)
{
    struct spw_exporter with, without;

    tier_open(tier_usual());
    with = without = exporter();
    without.tier = NULL;
    tier_fill_and_age(0);
    assert_int_equal(export(&without, tier.blocks[BLOCKS - 1]), SPW_E_LIMIT);
    tier_expect_evicted(0);
    assert_int_equal(export(&with, tier.blocks[BLOCKS - 1]), SPW_OK);
    assert_true(is_exported(tier.blocks[BLOCKS - 1]));
    tier_expect_evicted(BLOCKS / 2);
    tier_close();
}

/* Where nothing helps, the attempts end. */
static void test_no_room(void **state)
{
    struct spw_exporter with;

    tier_open(tier_usual());
    tier.pool.vm.no_host = tier.pool.vm.no_pinned = true;
    with = exporter();
    tier_fill_and_age(0);
    assert_int_equal(export(&with, tier.blocks[0]), SPW_E_LIMIT);
    assert_false(is_exported(tier.blocks[0]));
    tier_close();
}

/* A device that never becomes idle is waited for, about two seconds. */
static void test_busy_device(void **state)
{
    struct spw_exporter with;
    uint64_t begin;

    tier_open(tier_usual());
    with = exporter();
    tier_fill(0, 1);
    tier.pool.vm.immediate = false;
    begin = spw_clock_ns();
    assert_int_equal(export(&with, tier.blocks[0]), SPW_E_AGAIN);
    assert_in_range(spw_clock_ns() - begin, 1900 * (uint64_t)MS, 60000 * (uint64_t)MS);
    assert_false(is_exported(tier.blocks[0]));
    assert_int_equal(counter(&tier.pool.counters.closed_ns), 0);
    fake_vm_complete(&tier.pool.vm);
    tier.pool.vm.immediate = true;
    assert_int_equal(export(&with, tier.blocks[0]), SPW_OK);
    tier_close();
}

/* Whichever call fails, the block stays usable where it is; a copy that failed is tried again. */
static void test_faults(void **state)
{
    static const struct {
        int call;
        enum spw_err err;
    } cases[] = {{FAKE_COPY, SPW_OK}, {FAKE_MAP, SPW_E_DRIVER - 999}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct spw_exporter without;

        tier_open(tier_usual());
        without = exporter();
        without.tier = NULL;
        tier_fill(0, 2);
        tier.pool.vm.fail_call = cases[i].call;
        assert_int_equal(export(&without, tier.blocks[0]), cases[i].err);
        assert_int_equal(is_exported(tier.blocks[0]), cases[i].err == SPW_OK);
        assert_false(tier_is_on_host(0));
        assert_true(fake_vm_usable(&tier.pool.vm, tier.blocks[0], BLOCK * GRANULE));
        assert_int_equal(atomic_load(&spw_migrate_barrier.closed), 0);
        tier.pool.vm.fail_call = -1;
        assert_int_equal(export(&without, tier.blocks[0]), SPW_OK);
        tier_close();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_export),      cmocka_unit_test(test_another_block),
        cmocka_unit_test(test_full_device), cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_busy_device), cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
