/* Kernels that write where nothing tells of it, at any moment of a migration. With what is on by
 * default no write is lost. With `guarded` one may end with a fault; until then no write is lost.
 * Without hidden writes there is no fault.
 *
 * The device completes work at random times, and a kernel writes when it is completed. */
#include "migrate/move/migration.h"

#include <stdlib.h>

#include "pool_fixture.h"
#include "migrate/learn/progress.h"
#include "migrate/move/barrier.h"

enum { DEVICE = 24, HOST = 64, BLOCKS = 8, GRANULES = 2, STEPS = 60, SEEDS = 1000 };
enum { KERNELS = 4 * STEPS };

struct kernel {
    uint64_t time, address, value;
};

struct program {
    struct pool_fixture pool;
    struct spw_access_log log;
    struct spw_migrator migrator;
    uint64_t seed, first_seed;
    uint64_t blocks[BLOCKS];
    uint64_t expected[BLOCKS][GRANULES];
    struct kernel kernels[KERNELS];
    size_t submitted, completed;
    size_t moved;         /* granules */
    bool guarded, honest; /* honest: kernels name what they write */
    bool faulted;         /* the device ended with an error */
    struct spw_progress marks;
};

static struct program p;

static uint64_t draw(uint64_t bound)
{
    p.seed = p.seed * 6364136223846793005ull + 1442695040888963407ull;
    return (p.seed >> 33) % bound;
}

/* Lets the kernels write that the device has completed, in the order of their submission. */
static void run_kernels(struct fake_vm *vm)
{
    for (; p.completed < p.submitted && p.kernels[p.completed].time <= vm->finished;
         p.completed++) {
        const struct kernel *kernel = &p.kernels[p.completed];

        if (p.guarded && !p.honest && !fake_vm_usable(vm, kernel->address, GRANULE)) {
            p.faulted = true;
        }
        if (p.faulted) {
            continue;
        }
        vm->violations += !fake_vm_usable(vm, kernel->address, GRANULE);
        fake_vm_write(vm, kernel->address, GRANULE, kernel->value);
    }
}

static void open_program(uint64_t seed, bool guarded, bool honest)
{
    bool moves;

    p = (struct program){.seed = seed, .first_seed = seed, .guarded = guarded, .honest = honest};
    spw_migrate_barrier_reset();
    spw_migrate_barrier_arm();
    pool_open_small(&p.pool, 256, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(p.pool.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    for (size_t i = 0; i < BLOCKS; i++) {
        p.blocks[i] = pool_alloc(&p.pool, GRANULES * GRANULE, &stream_a);
        fake_vm_write(&p.pool.vm, p.blocks[i], GRANULES * GRANULE, 1000 * i);
        for (size_t k = 0; k < GRANULES; k++) {
            p.expected[i][k] = 1000 * i + k;
        }
    }
    assert_true(spw_migrate_access_log_open(&p.log, p.pool.pool, &p.pool.counters));
    p.migrator = (struct spw_migrator){.pool = p.pool.pool,
                                       .counters = &p.pool.counters,
                                       .granule_bytes = GRANULE,
                                       .wait_ns = 100000,
                                       .overlap = true,
                                       .guarded = guarded,
                                       .log = &p.log};
    p.marks = (struct spw_progress){.pool = p.pool.pool};
    p.pool.vm.seed = seed * 2 + 1;
    p.pool.vm.on_finished = run_kernels;
}

/* Submits a call that writes to one granule. A kernel names another block; a memset names this one;
 * of other calls nothing is known. */
static void submit(void)
{
    size_t block = draw(BLOCKS), granule = draw(GRANULES), kind = draw(10);
    uint64_t address = p.blocks[block] + granule * GRANULE;
    uint64_t other = p.blocks[draw(BLOCKS)], named = kind < 7 && !p.honest ? other : address;

    if (p.submitted == KERNELS) {
        return;
    }
    spw_migrate_barrier_acquire();
    if (kind < 9) {
        spw_migrate_access_log_record(&p.log, &named, 1, /* kernel */ kind < 7);
    } else {
        spw_migrate_access_log_record_partial(&p.log, NULL, 0);
    }
    p.expected[block][granule] = 100000 + p.submitted;
    p.kernels[p.submitted] = (struct kernel){.time = fake_vm_submit(&p.pool.vm),
                                             .address = address,
                                             .value = p.expected[block][granule]};
    p.submitted++;
    spw_migrate_barrier_release();
}

static void mark(void)
{
    const struct spw_access_log_snapshot now =
        spw_migrate_access_log_snapshot(&p.log, spw_migrate_barrier_submissions());

    spw_migrate_progress_set(&p.marks, NULL, &now);
}

static void begin(void)
{
    struct spw_move_place places[2 * GRANULES * 2];
    struct spw_move_request wish = {.places = places};
    bool since = p.guarded && draw(4) > 0;

    for (size_t i = 0; i < 2; i++) {
        size_t block = draw(BLOCKS);
        enum spw_tier to = draw(2) == 0 ? SPW_TIER_HOST : SPW_TIER_DEVICE;

        for (size_t k = 0; k < GRANULES; k++) {
            places[wish.count++] = (struct spw_move_place){
                .block = p.blocks[block], .granule = p.blocks[block] + k * GRANULE, .to = to};
        }
    }
    (void)spw_migrate_migration_begin(&p.migrator, &wish, (enum spw_migration_cause)draw(3),
                                      since ? spw_migrate_progress_completed(&p.marks) : NULL);
}

static void finish(void)
{
    uint64_t bytes = 0;

    if (p.migrator.in_flight > 0) {
        (void)spw_migrate_migration_finish(&p.migrator, /* patience_ns */ 0, &bytes);
        pool_check(&p.pool);
        p.moved += bytes / GRANULE;
    }
}

static void close_program(void)
{
    while (p.migrator.in_flight > 0) {
        finish();
    }
    fake_vm_complete(&p.pool.vm);
    (void)spw_migrate_migration_release(&p.migrator);
    (void)spw_migrate_progress_completed(&p.marks);
    (void)spw_pool_attach_all(p.pool.pool);
    pool_check(&p.pool);
    spw_migrate_access_log_close(&p.log);
    assert_int_equal(p.completed, p.submitted);
    for (size_t i = 0; i < BLOCKS && !p.faulted; i++) {
        for (size_t k = 0; k < GRANULES; k++) {
            if (fake_vm_differs(&p.pool.vm, p.blocks[i] + k * GRANULE, GRANULE, p.expected[i][k])) {
                fail_msg("a write was lost: SEED=%llu", (unsigned long long)p.first_seed);
            }
        }
    }
    pool_close(&p.pool);
}

static void run(uint64_t seed, bool guarded, bool honest)
{
    open_program(seed, guarded, honest);
    for (size_t step = 0; step < STEPS; step++) {
        uint64_t what = draw(10);

        if (what < 4) {
            begin();
        } else if (what < 8) {
            submit();
        } else {
            mark();
            finish();
        }
    }
    close_program();
}

static uint64_t seeds = SEEDS;

/* What happened in the runs of all seeds. */
struct totals {
    uint64_t moved, again, at_work, faulted;
};

/* With SEED in the environment, that one only. */
static struct totals run_all(bool guarded, bool honest)
{
    const char *only = getenv("SEED");
    struct totals totals = {0};

    if (only != NULL) {
        run(strtoull(only, NULL, 10), guarded, honest);
    }
    for (uint64_t seed = 1; only == NULL && seed <= seeds; seed++) {
        run(seed, guarded, honest);
        totals.moved += p.moved;
        totals.again += spw_counter_get(&p.pool.counters.second_copies);
        totals.at_work += spw_counter_get(&p.pool.counters.moves_at_work);
        totals.faulted += p.faulted;
    }
    return totals;
}

static void test_no_write_is_lost(void **state)
{
    struct totals totals = run_all(/* guarded */ false, /* honest */ false);

    if (getenv("SEED") == NULL) {
        assert_true(totals.moved > seeds);
        assert_true(totals.again > seeds / 4);
    }
}

static void test_guarded(void **state)
{
    struct totals totals = run_all(/* guarded */ true, /* honest */ true);

    if (getenv("SEED") == NULL) {
        assert_true(totals.moved > seeds);
        assert_true(totals.at_work > seeds / 4);
    }
}

static void test_guarded_with_hidden_writes(void **state)
{
    struct totals totals = run_all(/* guarded */ true, /* honest */ false);

    if (getenv("SEED") == NULL) {
        assert_true(totals.faulted > seeds / 8);
        assert_true(totals.faulted < seeds);
    }
}

/* test_hidden_writes [SEEDS] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_write_is_lost),
        cmocka_unit_test(test_guarded),
        cmocka_unit_test(test_guarded_with_hidden_writes),
    };

    if (argc > 1) {
        seeds = strtoull(argv[1], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
