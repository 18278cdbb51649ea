/* Giving a block chunks that other processes can map, while the program runs. */
#include "migrate/exporter.h"

#include <pthread.h>
#include <unistd.h>

#include "tier_fixture.h"
#include "system/clock.h"
#include "migrate/move/barrier.h"

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

/* ---- work of the device that takes its time ---- */

/* Work that begins as soon as the device has become idle for the first time, and then writes to a
 * block. */
static struct {
    uint64_t end; /* 0: it has not begun */
    bool written;
} late;

static void submit_and_write(struct fake_vm *vm)
{
    if (late.end == 0) {
        late.end = ++vm->clock;
    } else if (vm->finished >= late.end && !late.written) {
        fake_vm_write(vm, tier.blocks[0], BLOCK * GRANULE, 4711);
        late.written = true;
    }
}

/* Neither work that came before the barrier closed is missed, nor does the switch come before the
 * end of the copies: the device in memory counts the removal of memory that is being copied. */
static void test_slow_device(void **state)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct spw_exporter with;

        tier_open(tier_usual());
        with = exporter();
        with.wait_ns = UINT64_C(20000) * MS;
        tier_fill(0, 2);
        late.end = 0;
        late.written = false;
        tier.pool.vm.immediate = false;
        tier.pool.vm.on_finished = submit_and_write;
        tier.pool.vm.seed = seed;
        assert_int_equal(export(&with, tier.blocks[0]), SPW_OK);
        tier.pool.vm.seed = 0;
        assert_true(is_exported(tier.blocks[0]));
        fake_vm_complete(&tier.pool.vm);
        pool_expect(&tier.pool, tier.blocks[0], BLOCK, 4711, /* on_host */ 0);
        tier_close();
    }
}

static size_t calls(enum fake_call call)
{
    size_t count;

    pthread_mutex_lock(&tier.pool.vm.lock);
    count = tier.pool.vm.calls[call];
    pthread_mutex_unlock(&tier.pool.vm.lock);
    return count;
}

static _Atomic size_t copies_meanwhile;

/* Submits work until the exporter has tried twice to close the barrier: a fence begins each try. */
static void *stay_inside(void *ret_inside)
{
    size_t fences = calls(FAKE_FENCE);

    spw_migrate_barrier_acquire();
    atomic_store((_Atomic bool *)ret_inside, true);
    while (calls(FAKE_FENCE) < fences + 3) {
        usleep(100);
    }
    atomic_store(&copies_meanwhile, calls(FAKE_COPY));
    spw_migrate_barrier_release();
    return NULL;
}

/* Nothing is copied while a thread submits work. */
static void test_a_thread_submits(void **state)
{
    struct spw_exporter with;
    _Atomic bool inside = false;
    pthread_t thread;

    tier_open(tier_usual());
    with = exporter();
    tier_fill(0, 1);
    assert_int_equal(pthread_create(&thread, NULL, stay_inside, &inside), 0);
    while (!atomic_load(&inside)) {
        usleep(100);
    }
    assert_int_equal(export(&with, tier.blocks[0]), SPW_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&copies_meanwhile), 0);
    assert_false(tier_is_on_host(0));
    tier_close();
}

/* ---- faults ---- */

/* Whichever call fails, and however often, the block stays usable where it is. */
static void test_faults(void **state)
{
    static const enum fake_call tried[] = {FAKE_COPY, FAKE_MAP, FAKE_ACCESS, FAKE_UNMAP};

    for (size_t i = 0; i < 4 * 4 * 6; i++) {
        struct spw_exporter without;
        enum spw_err err;

        tier_open(tier_usual());
        without = exporter();
        without.tier = NULL;
        tier_fill(0, 2);
        tier.pool.vm.fail_call = (int)tried[i % 4];
        tier.pool.vm.fail_after = i / 4 % 4;
        tier.pool.vm.fail_more = tried[i % 4] == FAKE_UNMAP ? 0 : i / 16;
        err = export(&without, tier.blocks[0]);
        assert_true(tried[i % 4] != FAKE_COPY || err == SPW_OK); /* it is tried again */
        assert_int_equal(is_exported(tier.blocks[0]), err == SPW_OK);
        assert_false(tier_is_on_host(0));
        assert_true(fake_vm_usable(&tier.pool.vm, tier.blocks[0], BLOCK * GRANULE));
        assert_int_equal(atomic_load(&spw_migrate_barrier.closed), 0);
        tier.pool.vm.fail_call = -1;
        assert_int_equal(export(&without, tier.blocks[0]), SPW_OK);
        assert_false(tier_is_on_host(0));
        tier_close();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_export),           cmocka_unit_test(test_another_block),
        cmocka_unit_test(test_full_device),      cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_busy_device),      cmocka_unit_test(test_slow_device),
        cmocka_unit_test(test_a_thread_submits), cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
