/* Migrations beside a busy device: what is switched, what stays, what is waited for. */
#include "migrate/move/migration.h"

#include "migrator_fixture.h"
#include "migrate/learn/progress.h"

enum { DEVICE = 16, HOST = 32, COPIES = FAKE_STREAMS - 1 };

/* Three blocks of two granules each, and two blocks that share a granule. */
struct fixture {
    struct pool_fixture pool;
    struct spw_access_log log;
    struct spw_migrator migrator;
    uint64_t a, b, c, half, other_half;
};

static void open_fixture(struct fixture *f)
{
    migrator_open_pool(&f->pool, DEVICE, HOST);
    f->a = pool_alloc(&f->pool, 2 * GRANULE, &stream_a);
    f->b = pool_alloc(&f->pool, 2 * GRANULE, &stream_a);
    f->c = pool_alloc(&f->pool, 2 * GRANULE, &stream_a);
    f->half = pool_alloc(&f->pool, 3 * GRANULE / 2, &stream_a);
    f->other_half = pool_alloc(&f->pool, 3 * GRANULE / 2, &stream_a);
    assert_int_equal(f->other_half, f->half + 3 * GRANULE / 2);
    fake_vm_write(&f->pool.vm, f->a, 2 * GRANULE, 100);
    assert_true(spw_migrate_access_log_open(&f->log, f->pool.pool, &f->pool.counters));
    f->migrator = (struct spw_migrator){.pool = f->pool.pool,
                                        .counters = &f->pool.counters,
                                        .granule_bytes = GRANULE,
                                        .wait_ns = 100000,
                                        .overlap = true,
                                        .guarded = true,
                                        .log = &f->log};
}

static void close_fixture(struct fixture *f)
{
    migrator_close(&f->pool, &f->log, &f->migrator);
}

/* Submits a call, which the device completes only later. */
static void submit(struct fixture *f, uint64_t address)
{
    spw_migrate_barrier_acquire();
    spw_migrate_access_log_record(&f->log, &address, 1, /* kernel */ true);
    spw_migrate_barrier_release();
}

static void submit_unknown(struct fixture *f)
{
    spw_migrate_barrier_acquire();
    spw_migrate_access_log_record_partial(&f->log, NULL, 0);
    spw_migrate_barrier_release();
}

static struct spw_access_log_snapshot now(struct fixture *f)
{
    return spw_migrate_access_log_snapshot(&f->log, spw_migrate_barrier_submissions());
}

/* Begins to migrate blocks of two granules. Only its copies are completed. Without `since`, guarded
 * migrations begin when all earlier work is complete. */
static void begin_to(struct fixture *f, const uint64_t *blocks, size_t count, enum spw_tier to,
                     const struct spw_access_log_snapshot *since)
{
    struct spw_move_place places[8];
    const struct spw_move_request wish = {.places = places, .count = 2 * count};
    const struct spw_access_log_snapshot latest = now(f);

    since = since == NULL && f->migrator.guarded ? &latest : since;
    for (size_t i = 0; i < 2 * count; i++) {
        places[i] = (struct spw_move_place){
            .block = blocks[i / 2], .granule = blocks[i / 2] + i % 2 * GRANULE, .to = to};
    }
    assert_int_equal(spw_migrate_migration_begin(&f->migrator, &wish, SPW_MIGRATION_PLANNED, since),
                     SPW_OK);
    fake_vm_complete_stream(&f->pool.vm, COPIES);
}

static void begin(struct fixture *f, const uint64_t *blocks, size_t count,
                  const struct spw_access_log_snapshot *since)
{
    begin_to(f, blocks, count, SPW_TIER_HOST, since);
}

static enum spw_err finish(struct fixture *f)
{
    uint64_t bytes;
    enum spw_err err = spw_migrate_migration_finish(&f->migrator, 0, &bytes);

    pool_check(&f->pool);
    return err;
}

/* Maps a block again, as its next use does. */
static bool is_on_host(struct fixture *f, uint64_t block)
{
    (void)spw_pool_attach(f->pool.pool, block, block + 2 * GRANULE);
    assert_true(fake_vm_usable(&f->pool.vm, block, 2 * GRANULE));
    return fake_vm_on_host(&f->pool.vm, block, 2 * GRANULE) == 2;
}

static uint64_t device_busy(const struct fixture *f)
{
    return spw_counter_get(&f->pool.counters.moves_at_work);
}

static void test_unaccessed_granules_switch(void **state)
{
    struct fixture f;

    open_fixture(&f);
    submit(&f, f.b);
    begin(&f, &f.a, 1, NULL);
    submit(&f, f.b);
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(is_on_host(&f, f.a));
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
    assert_int_equal(device_busy(&f), 1);
    close_fixture(&f);
}

static void test_accessed_granules_stay(void **state)
{
    struct fixture f;
    uint64_t blocks[2];

    open_fixture(&f);
    blocks[0] = f.a;
    blocks[1] = f.b;
    begin(&f, blocks, 2, NULL);
    submit(&f, f.a + GRANULE + 512);
    assert_int_equal(finish(&f), SPW_OK);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.a, 2 * GRANULE), 0);
    assert_true(is_on_host(&f, f.b));
    close_fixture(&f);
}

static void test_all_accessed(void **state)
{
    struct fixture f;

    open_fixture(&f);
    begin(&f, &f.a, 1, NULL);
    submit(&f, f.a);
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    assert_false(is_on_host(&f, f.a));
    assert_int_equal(device_busy(&f), 0);
    close_fixture(&f);
}

/* The migrations that were told of, and the granules of the last one. */
static size_t told, told_granules;
static uint64_t told_first;

static void note_moved(int ordinal, const struct spw_migrate_switched *switched)
{
    told++;
    told_granules = switched->count;
    told_first = switched->places[0].granule;
}

/* The neighbouring block lies on the second granule too. Only the first one is told of. */
static void test_neighbour_is_accessed(void **state)
{
    struct fixture f;

    open_fixture(&f);
    told = 0;
    f.migrator.moved = note_moved;
    begin(&f, &f.half, 1, NULL);
    submit(&f, f.other_half + 512);
    assert_int_equal(finish(&f), SPW_OK);
    (void)spw_pool_attach_all(f.pool.pool);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.half, GRANULE), 1);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.half + GRANULE, GRANULE), 0);
    assert_int_equal(told_granules, 1);
    assert_int_equal(told_first, f.half);
    close_fixture(&f);
}

/* Work that names memory without a known block may use all of a block there. */
static void test_access_outside_of_blocks(void **state)
{
    struct fixture f;

    open_fixture(&f);
    spw_migrate_access_log_free(&f.log, f.a);
    begin(&f, &f.a, 1, NULL);
    submit(&f, f.a + 512);
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.a, 2 * GRANULE), 0);
    close_fixture(&f);
}

static void test_before_an_unknown_call(void **state)
{
    struct fixture f;

    open_fixture(&f);
    told = 0;
    f.migrator.moved = note_moved;
    begin(&f, &f.a, 1, NULL);
    assert_false(fake_vm_usable(&f.pool.vm, f.a, GRANULE));
    submit_unknown(&f);
    assert_true(fake_vm_usable(&f.pool.vm, f.a, 2 * GRANULE));
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    assert_int_equal(told, 0);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.a, 2 * GRANULE), 0);
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
    close_fixture(&f);
}

/* What was evicted stays unmapped until a call names it, or may use any memory. */
static void test_away_until_its_use(void **state)
{
    for (int unknown = 0; unknown < 2; unknown++) {
        struct fixture f;
        uint64_t blocks[2];
        size_t calls;

        open_fixture(&f);
        blocks[0] = f.a;
        blocks[1] = f.b;
        begin(&f, blocks, 2, NULL);
        calls = f.pool.vm.calls[FAKE_MAP];
        assert_int_equal(finish(&f), SPW_OK);
        assert_int_equal(f.pool.vm.calls[FAKE_MAP], calls);
        submit(&f, f.c);
        assert_false(fake_vm_usable(&f.pool.vm, f.a, GRANULE));
        if (unknown) {
            submit_unknown(&f);
        } else {
            submit(&f, f.a + GRANULE + 512);
        }
        assert_int_equal(fake_vm_on_host(&f.pool.vm, f.a, 2 * GRANULE), 2);
        assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
        assert_int_equal(fake_vm_usable(&f.pool.vm, f.b, 2 * GRANULE), unknown);
        /* It returns without having been mapped. */
        begin_to(&f, blocks, 2, SPW_TIER_DEVICE, NULL);
        assert_int_equal(finish(&f), SPW_OK);
        assert_true(fake_vm_usable(&f.pool.vm, f.a, 2 * GRANULE));
        assert_true(fake_vm_usable(&f.pool.vm, f.b, 2 * GRANULE));
        assert_int_equal(fake_vm_on_host(&f.pool.vm, f.a, 2 * GRANULE), 0);
        assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
        close_fixture(&f);
    }
}

/* A submission of this thread is under way and an unknown one came in between: the counts agree by
 * chance, so nothing is unmapped. */
static void test_inside_a_submission(void **state)
{
    struct spw_access_log_snapshot then;
    struct fixture f;

    open_fixture(&f);
    then = now(&f);
    spw_migrate_barrier_acquire();
    spw_migrate_access_log_record(&f.log, &f.b, 1, /* kernel */ true);
    begin(&f, &f.a, 1, &then);
    assert_true(fake_vm_usable(&f.pool.vm, f.a, 2 * GRANULE));
    f.pool.vm.immediate = true;
    assert_int_equal(finish(&f), SPW_OK);
    spw_migrate_barrier_release();
    assert_true(is_on_host(&f, f.a));
    assert_int_equal(device_busy(&f), 0);
    close_fixture(&f);
}

static void test_not_guarded(void **state)
{
    struct fixture f;

    open_fixture(&f);
    f.migrator.guarded = false;
    begin(&f, &f.a, 1, NULL);
    submit(&f, f.b);
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    f.migrator.guarded = true;
    f.migrator.verify = true;
    f.migrator.skip = 0;
    begin(&f, &f.a, 1, NULL);
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    assert_false(is_on_host(&f, f.a));
    close_fixture(&f);
}

/* ---- content and faults ---- */

/* Content is hashed before and after the switch. Without the first hash nothing is switched. */
static void test_verified(void **state)
{
    struct fixture f;

    open_fixture(&f);
    f.migrator.guarded = f.migrator.overlap = false;
    f.migrator.verify = true;
    f.pool.vm.immediate = true;
    f.pool.vm.fail_call = FAKE_HASH;
    begin(&f, &f.a, 1, NULL);
    assert_int_equal(finish(&f), SPW_E_DRIVER - 999);
    assert_false(is_on_host(&f, f.a));
    f.migrator.skip = 0;
    f.pool.vm.calls[FAKE_HASH] = 0;
    begin(&f, &f.a, 1, NULL);
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(is_on_host(&f, f.a));
    assert_int_equal(f.pool.vm.calls[FAKE_HASH], 4);
    assert_int_equal(spw_counter_get(&f.pool.counters.second_copies), 0);
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
    close_fixture(&f);
}

/* A mapping that the driver refuses is made again before the program goes on. */
static void test_mapping_is_refused(void **state)
{
    for (int busy = 0; busy < 2; busy++) {
        struct fixture f;

        open_fixture(&f);
        f.migrator.guarded = busy;
        f.pool.vm.immediate = true;
        begin(&f, &f.a, 1, NULL);
        if (busy) { /* an eviction maps nothing */
            assert_int_equal(finish(&f), SPW_OK);
            begin_to(&f, &f.a, 1, SPW_TIER_DEVICE, NULL);
        }
        f.pool.vm.fail_call = FAKE_MAP;
        f.pool.vm.fail_more = 1; /* neither the new chunk nor the old one */
        assert_int_not_equal(finish(&f), SPW_OK);
        (void)spw_pool_attach_all(f.pool.pool);
        assert_true(fake_vm_usable(&f.pool.vm, f.a, 2 * GRANULE));
        assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
        assert_int_equal(spw_counter_get(&f.pool.counters.abandoned_moves), 1);
        f.pool.vm.fail_call = -1;
        close_fixture(&f);
    }
}

/* A copy that the driver refuses ends the migration, before and after submissions are held back. */
static void test_copy_is_refused(void **state)
{
    const struct spw_move_request wish = {.to = SPW_TIER_HOST, .bytes = 2 * GRANULE};

    for (int overlap = 0; overlap < 2; overlap++) {
        struct fixture f;

        open_fixture(&f);
        f.migrator.guarded = false;
        f.migrator.overlap = overlap;
        f.pool.vm.immediate = true;
        f.pool.vm.fail_call = FAKE_COPY;
        assert_int_equal(
            spw_migrate_migration_begin(&f.migrator, &wish, SPW_MIGRATION_PLANNED, NULL),
            overlap ? SPW_E_AGAIN : SPW_OK);
        if (!overlap) {
            assert_int_equal(finish(&f), SPW_E_AGAIN);
            (void)spw_migrate_migration_release(&f.migrator);
        }
        assert_int_equal(f.migrator.in_flight, 0);
        assert_null(f.migrator.to_release);
        assert_int_equal(spw_counter_get(&f.pool.counters.abandoned_moves), 1);
        assert_int_equal(spw_counter_get(&f.pool.counters.closed_ns) > 0, !overlap);
        assert_false(is_on_host(&f, f.a));
        close_fixture(&f);
    }
}

/* Nothing is copied for a caller that waits before submissions are held back. */
static void test_awaited_has_no_precopy(void **state)
{
    const struct spw_move_request wish = {.to = SPW_TIER_HOST, .bytes = 2 * GRANULE};
    struct fixture f;

    open_fixture(&f);
    f.migrator.guarded = false;
    f.pool.vm.immediate = true;
    assert_int_equal(spw_migrate_migration_begin(&f.migrator, &wish, SPW_MIGRATION_AWAITED, NULL),
                     SPW_OK);
    assert_false(f.migrator.migrations[0].precopied);
    assert_int_equal(finish(&f), SPW_OK);
    assert_int_equal(spw_counter_get(&f.pool.counters.second_copies), 0);
    assert_true(is_on_host(&f, f.a));
    close_fixture(&f);
}

/* ---- refusals ---- */

static void abandon(struct fixture *f)
{
    begin(f, &f->a, 1, NULL);
    submit(f, f->a);
    assert_int_equal(finish(f), SPW_E_AGAIN);
}

static void expect_refusals(struct fixture *f, uint32_t count)
{
    const struct spw_move_request wish = {.to = SPW_TIER_HOST, .bytes = GRANULE};
    uint64_t bytes = 4711;

    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(
            spw_migrate_migration_run(&f->migrator, &wish, SPW_MIGRATION_OTHER, NULL, 0, &bytes),
            SPW_E_AGAIN);
        assert_int_equal(bytes, 0);
    }
    assert_int_equal(f->migrator.skip, 0);
}

/* After an abandoned migration the next one is refused, after another the next three, and so on. A
 * success ends that. */
static void test_refusals_after_abandoned_ones(void **state)
{
    static const uint32_t counts[] = {1, 3, 7, 15, 31, 63, 127, 127};
    struct fixture f;

    open_fixture(&f);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        abandon(&f);
        expect_refusals(&f, counts[i]);
        assert_int_equal(spw_counter_get(&f.pool.counters.abandoned_moves), i + 1);
    }
    begin(&f, &f.b, 1, NULL);
    assert_int_equal(finish(&f), SPW_OK);
    assert_int_equal(spw_counter_get(&f.pool.counters.moves), 1);
    abandon(&f);
    expect_refusals(&f, 1);
    begin(&f, &f.c, 1, NULL);
    assert_int_equal(finish(&f), SPW_OK);
    close_fixture(&f);
}

/* After two pre-copies in a row that had to be repeated, only one in 64 is tried. */
static void test_precopies_left_out(void **state)
{
    struct fixture f;

    open_fixture(&f);
    f.migrator.guarded = false;
    f.pool.vm.immediate = true;
    for (int i = 1; i <= 64; i++) {
        begin_to(&f, &f.a, 1, i % 2 == 1 ? SPW_TIER_HOST : SPW_TIER_DEVICE, NULL);
        assert_int_equal(f.migrator.migrations[f.migrator.first].precopied, i <= 2 || i == 64);
        submit(&f, f.a);
        assert_int_equal(finish(&f), SPW_OK);
    }
    close_fixture(&f);
}

/* ---- two at once ---- */

static void test_two_in_flight(void **state)
{
    struct fixture f;
    uint64_t bytes;

    open_fixture(&f);
    begin(&f, &f.a, 1, NULL);
    begin(&f, &f.b, 1, NULL);
    assert_int_equal(f.migrator.in_flight, SPW_MOVES);
    assert_int_equal(spw_migrate_migration_begin(
                         &f.migrator,
                         &(struct spw_move_request){.to = SPW_TIER_HOST, .bytes = GRANULE},
                         SPW_MIGRATION_PLANNED, NULL),
                     SPW_E_AGAIN);
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(is_on_host(&f, f.a));
    assert_int_equal(spw_counter_get(&f.pool.counters.spilled_bytes), 2 * GRANULE);
    begin(&f, &f.c, 1, NULL);
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(is_on_host(&f, f.b));
    assert_int_equal(spw_migrate_migration_finish(&f.migrator, 0, &bytes), SPW_OK);
    assert_int_equal(bytes, 2 * GRANULE);
    assert_int_equal(f.migrator.in_flight, 0);
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
    close_fixture(&f);
}

/* Each migration counts accesses since its own beginning. */
static void test_each_counts_its_own_accesses(void **state)
{
    struct fixture f;

    open_fixture(&f);
    begin(&f, &f.a, 1, NULL);
    submit(&f, f.b);
    begin(&f, &f.b, 1, NULL);
    submit(&f, f.a + GRANULE + 512);
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    assert_int_equal(finish(&f), SPW_OK);
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.a, 2 * GRANULE), 0);
    assert_true(is_on_host(&f, f.b));
    close_fixture(&f);
}

/* A block is incoming while any migration to the device contains it. */
static void test_incoming(void **state)
{
    struct fixture f;

    open_fixture(&f);
    begin(&f, &f.a, 1, NULL);
    begin(&f, &f.b, 1, NULL);
    assert_int_equal(finish(&f), SPW_OK);
    assert_int_equal(finish(&f), SPW_OK);
    begin_to(&f, &f.a, 1, SPW_TIER_DEVICE, NULL);
    begin_to(&f, &f.b, 1, SPW_TIER_DEVICE, NULL);
    assert_int_equal(finish(&f), SPW_OK);
    assert_false(spw_migrate_access_log_is_incoming(&f.log, &f.a, 1));
    assert_true(spw_migrate_access_log_is_incoming(&f.log, &f.b, 1));
    assert_int_equal(finish(&f), SPW_OK);
    assert_false(spw_migrate_access_log_is_incoming(&f.log, &f.b, 1));
    close_fixture(&f);
}

/* ---- one that waits for the other ---- */

/* Not guarded: the migration of `b` waits for that of `a`. */
static void open_with_one_waiting(struct fixture *f)
{
    open_fixture(f);
    f->migrator.guarded = false;
    f->pool.vm.immediate = true;
    begin(f, &f->a, 1, NULL);
    begin(f, &f->b, 1, NULL);
}

/* A write before the first switch is in the pre-copy of the second migration. */
static void test_copied_when_the_first_is_exchanged(void **state)
{
    struct fixture f;

    open_with_one_waiting(&f);
    assert_false(f.migrator.migrations[1].precopied);
    submit(&f, f.b);
    fake_vm_write(&f.pool.vm, f.b, 2 * GRANULE, 300);
    assert_int_equal(finish(&f), SPW_OK);
    assert_int_equal(spw_counter_get(&f.pool.counters.second_copies), 1); /* of the first */
    assert_true(is_on_host(&f, f.a));
    assert_true(f.migrator.migrations[1].precopied);
    assert_int_equal(finish(&f), SPW_OK);
    assert_int_equal(spw_counter_get(&f.pool.counters.second_copies), 1);
    assert_true(is_on_host(&f, f.b));
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.b, 2 * GRANULE, 300), 0);
    close_fixture(&f);
}

/* A write after the first switch is not: the second is copied again. */
static void test_written_after_the_first_was_exchanged(void **state)
{
    struct fixture f;

    open_with_one_waiting(&f);
    assert_int_equal(finish(&f), SPW_OK);
    submit(&f, f.b);
    fake_vm_write(&f.pool.vm, f.b, 2 * GRANULE, 300);
    assert_int_equal(finish(&f), SPW_OK);
    assert_int_equal(spw_counter_get(&f.pool.counters.second_copies), 1);
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.b, 2 * GRANULE, 300), 0);
    close_fixture(&f);
}

/* The first is abandoned because the device stays busy. The second is pre-copied all the same,
 * behind all submitted work. */
static void test_copied_when_the_first_is_abandoned(void **state)
{
    struct fixture f;

    open_with_one_waiting(&f);
    f.pool.vm.immediate = false;
    submit(&f, f.c);
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    assert_true(f.migrator.migrations[1].precopied);
    assert_int_equal(f.migrator.in_flight, 1);
    fake_vm_complete(&f.pool.vm);
    f.pool.vm.immediate = true;
    assert_int_equal(finish(&f), SPW_OK);
    assert_false(is_on_host(&f, f.a));
    assert_true(is_on_host(&f, f.b));
    close_fixture(&f);
}

/* The pre-copy of the second fails: it is abandoned, and the first is switched. */
static void test_copies_refused_when_the_first_is_exchanged(void **state)
{
    struct fixture f;

    open_with_one_waiting(&f);
    f.pool.vm.fail_call = FAKE_COPY;
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(is_on_host(&f, f.a));
    assert_int_equal(f.migrator.in_flight, 0);
    assert_int_equal(spw_counter_get(&f.pool.counters.abandoned_moves), 1);
    f.migrator.skip = 0;
    begin(&f, &f.b, 1, NULL);
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(is_on_host(&f, f.b));
    close_fixture(&f);
}

/* ---- since a moment that the device has passed ---- */

static void test_since_a_snapshot(void **state)
{
    struct spw_access_log_snapshot then;
    uint64_t blocks[2];
    struct fixture f;

    open_fixture(&f);
    submit_unknown(&f);
    submit(&f, f.a);
    then = now(&f);
    submit(&f, f.b);
    blocks[0] = f.a;
    blocks[1] = f.b;
    begin(&f, blocks, 2, &then);
    submit(&f, f.c);
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(is_on_host(&f, f.a));
    assert_int_equal(fake_vm_on_host(&f.pool.vm, f.b, 2 * GRANULE), 0);
    close_fixture(&f);
}

static void test_unknown_since_a_snapshot(void **state)
{
    struct spw_access_log_snapshot then;
    struct fixture f;

    open_fixture(&f);
    then = now(&f);
    submit_unknown(&f);
    begin(&f, &f.a, 1, &then);
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    assert_false(is_on_host(&f, f.a));
    close_fixture(&f);
}

/* The call of another thread is recorded and not submitted yet at the snapshot, so it may lie on
 * either side of a mark. */
static void test_snapshot_within_a_call(void **state)
{
    struct spw_access_log_snapshot then;
    struct fixture f;

    open_fixture(&f);
    spw_migrate_barrier_acquire();
    spw_migrate_access_log_record(&f.log, &f.a, 1, /* kernel */ true);
    then = now(&f);
    spw_migrate_barrier_release();
    begin(&f, &f.a, 1, &then);
    assert_int_equal(finish(&f), SPW_E_AGAIN);
    assert_false(is_on_host(&f, f.a));
    close_fixture(&f);
}

/* ---- what is in use all the time ---- */

/* Migrations that are given up leave the blocks where they were, and all memory is released. */
static void test_give_up(void **state)
{
    struct fixture f;

    open_fixture(&f);
    begin(&f, &f.a, 1, NULL);
    begin(&f, &f.b, 1, NULL);
    assert_int_equal(f.migrator.in_flight, 2);
    assert_int_equal(spw_counter_get(&f.pool.counters.host_bytes), 4 * GRANULE);
    spw_migrate_migration_give_up(&f.migrator);
    assert_int_equal(f.migrator.in_flight, 0);
    assert_null(f.migrator.to_release);
    pool_check(&f.pool);
    assert_false(is_on_host(&f, f.a));
    assert_int_equal(fake_vm_differs(&f.pool.vm, f.a, 2 * GRANULE, 100), 0);
    fake_vm_complete(&f.pool.vm);
    (void)spw_pool_trim_host(f.pool.pool);
    assert_int_equal(spw_counter_get(&f.pool.counters.host_bytes), 0);
    assert_int_equal(spw_counter_get(&f.pool.counters.moves), 0);
    f.migrator.skip = 0;
    begin(&f, &f.a, 1, NULL);
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(is_on_host(&f, f.a));
    close_fixture(&f);
}

/* A step that uses two blocks of different sizes. */
static void take_step(struct fixture *f)
{
    submit(f, f->a);
    submit(f, f->half);
}

/* Blocks used since the completed snapshot are left out. After more than a period they are counted
 * as hot, and are planned on request. */
static void test_hot_on_the_host(void **state)
{
    struct fixture f;
    struct spw_access_log_snapshot completed;
    struct spw_access_log_goal wish = {.most = 4, .completed = &completed};
    struct spw_access_log_plan plan;

    open_fixture(&f);
    begin(&f, &f.a, 1, NULL);
    fake_vm_complete(&f.pool.vm);
    assert_int_equal(finish(&f), SPW_OK);
    assert_true(spw_migrate_migration_release(&f.migrator));
    for (int i = 0; i < 40; i++) {
        take_step(&f);
    }
    completed = now(&f);
    spw_migrate_access_log_plan(&f.log, &wish, &plan);
    assert_int_equal(plan.hot, 0);
    assert_int_equal(plan.count, 2);
    for (int periods = 1; periods <= 2; periods++) {
        take_step(&f);
        spw_migrate_access_log_plan(&f.log, &wish, &plan);
        assert_int_equal(plan.hot, periods == 1 ? 0 : 2);
        assert_int_equal(plan.count, 0);
    }
    wish.hot = true;
    spw_migrate_access_log_plan(&f.log, &wish, &plan);
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.places[0].to, SPW_TIER_DEVICE);
    assert_int_equal(plan.places[0].granule, f.a);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unaccessed_granules_switch),
        cmocka_unit_test(test_give_up),
        cmocka_unit_test(test_accessed_granules_stay),
        cmocka_unit_test(test_all_accessed),
        cmocka_unit_test(test_neighbour_is_accessed),
        cmocka_unit_test(test_access_outside_of_blocks),
        cmocka_unit_test(test_before_an_unknown_call),
        cmocka_unit_test(test_away_until_its_use),
        cmocka_unit_test(test_inside_a_submission),
        cmocka_unit_test(test_not_guarded),
        cmocka_unit_test(test_verified),
        cmocka_unit_test(test_mapping_is_refused),
        cmocka_unit_test(test_copy_is_refused),
        cmocka_unit_test(test_awaited_has_no_precopy),
        cmocka_unit_test(test_refusals_after_abandoned_ones),
        cmocka_unit_test(test_precopies_left_out),
        cmocka_unit_test(test_two_in_flight),
        cmocka_unit_test(test_each_counts_its_own_accesses),
        cmocka_unit_test(test_incoming),
        cmocka_unit_test(test_copied_when_the_first_is_exchanged),
        cmocka_unit_test(test_written_after_the_first_was_exchanged),
        cmocka_unit_test(test_copied_when_the_first_is_abandoned),
        cmocka_unit_test(test_copies_refused_when_the_first_is_exchanged),
        cmocka_unit_test(test_since_a_snapshot),
        cmocka_unit_test(test_unknown_since_a_snapshot),
        cmocka_unit_test(test_snapshot_within_a_call),
        cmocka_unit_test(test_hot_on_the_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
