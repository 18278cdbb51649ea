/* Migrations that do without a pre-copy, and how long they wait for copies and for lost memory. */
#include "migrate/move/migration.h"

#include <string.h>

#include "migrator_fixture.h"
#include "system/clock.h"

enum { BLOCKS = 6, DEVICE = 2 * BLOCKS, HOST = 32, MS = 1000000 };

/* Blocks of two granules each, on a device that completes all work at once. */
static struct {
    struct pool_fixture pool;
    struct spw_access_log log;
    struct spw_migrator migrator;
    uint64_t blocks[BLOCKS];
} f;

static uint64_t value_of(int block)
{
    return 100 + 10 * (uint64_t)block;
}

static void open_fixture(bool guarded, bool overlap)
{
    memset(&f, 0, sizeof(f));
    migrator_open_pool(&f.pool, DEVICE, HOST);
    f.pool.vm.immediate = true;
    for (int i = 0; i < BLOCKS; i++) {
        f.blocks[i] = pool_alloc(&f.pool, 2 * GRANULE, &stream_a);
        fake_vm_write(&f.pool.vm, f.blocks[i], 2 * GRANULE, value_of(i));
    }
    assert_true(spw_migrate_access_log_open(&f.log, f.pool.pool, &f.pool.counters));
    f.migrator = (struct spw_migrator){.pool = f.pool.pool,
                                       .counters = &f.pool.counters,
                                       .granule_bytes = GRANULE,
                                       .wait_ns = MS,
                                       .overlap = overlap,
                                       .guarded = guarded,
                                       .log = &f.log};
}

static void close_fixture(void)
{
    migrator_close(&f.pool, &f.log, &f.migrator);
}

/* Begins to move blocks [first, end) to the host. */
static void begin(int first, int end)
{
    struct spw_move_place places[2 * BLOCKS];
    struct spw_move_request wish = {.places = places};

    for (int i = first; i < end; i++) {
        for (uint64_t g = 0; g < 2; g++) {
            places[wish.count++] = (struct spw_move_place){
                .block = f.blocks[i], .granule = f.blocks[i] + g * GRANULE, .to = SPW_TIER_HOST};
        }
    }
    assert_int_equal(
        spw_migrate_migration_begin(&f.migrator, &wish, SPW_MIGRATION_OTHER, /* since */ NULL),
        SPW_OK);
}

static enum spw_err finish(void)
{
    uint64_t bytes;

    return spw_migrate_migration_finish(&f.migrator, /* patience_ns */ 0, &bytes);
}

static void expect(int block, bool on_host)
{
    pool_expect(&f.pool, f.blocks[block], 2, value_of(block), on_host ? 2 : 0);
}

/* With `guarded`, but without a snapshot, nothing can be switched at once: it is copied first. */
static void test_guarded_without_a_snapshot(void **state)
{
    open_fixture(/* guarded */ true, /* overlap */ false);
    begin(0, 1);
    spw_migrate_barrier_acquire();
    spw_migrate_access_log_record(&f.log, &f.blocks[1], 1, /* kernel */ true);
    spw_migrate_barrier_release();
    assert_int_equal(finish(), SPW_OK);
    expect(0, true);
    expect(1, false);
    assert_int_equal(spw_counter_get(&f.pool.counters.moves_at_work), 0);
    close_fixture();
}

/* Copies that are not completed are waited for in proportion to their bytes, beside the usual time.
 */
static void test_wait_for_copies(void **state)
{
    static const uint64_t waits_ns[] = {100000, 30 * MS};
    const uint64_t copies_ns = DEVICE * (uint64_t)GRANULE / 1024 * 200; /* 5 GB/s */

    for (int i = 0; i < 2; i++) {
        uint64_t begin_ns;

        open_fixture(/* guarded */ false, /* overlap */ false);
        f.migrator.wait_ns = waits_ns[i];
        begin(0, BLOCKS);
        /* The device is idle, before and after submissions are held back. */
        f.pool.vm.fail_call = FAKE_QUERY;
        f.pool.vm.fail_after = 2;
        f.pool.vm.fail_more = SIZE_MAX;
        begin_ns = spw_clock_ns();
        assert_int_equal(finish(), SPW_E_AGAIN);
        assert_true(spw_clock_ns() - begin_ns >= waits_ns[i] + copies_ns);
        assert_true(f.pool.vm.calls[FAKE_COPY] > 0);
        f.pool.vm.fail_call = -1;
        expect(0, false);
        close_fixture();
    }
}

/* While the driver maps nothing, the memory that lost its mapping stays the only such memory: the
 * next switch is not begun. */
static void test_no_switch_while_memory_is_lost(void **state)
{
    size_t unmapped;

    open_fixture(/* guarded */ true, /* overlap */ true);
    begin(0, 1);
    begin(1, 2);
    f.pool.vm.fail_call = FAKE_MAP;
    f.pool.vm.fail_more = SIZE_MAX;
    assert_int_not_equal(finish(), SPW_OK);
    assert_false(fake_vm_usable(&f.pool.vm, f.blocks[0], 2 * GRANULE));
    unmapped = f.pool.vm.calls[FAKE_UNMAP];
    assert_int_not_equal(finish(), SPW_OK);
    assert_int_equal(f.pool.vm.calls[FAKE_UNMAP], unmapped);
    assert_int_equal(f.migrator.in_flight, 0);
    expect(1, false);
    f.pool.vm.fail_call = -1;
    assert_int_equal(spw_pool_move_remap_lost(f.pool.pool), SPW_OK);
    expect(0, false);
    close_fixture();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guarded_without_a_snapshot),
        cmocka_unit_test(test_wait_for_copies),
        cmocka_unit_test(test_no_switch_while_memory_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
