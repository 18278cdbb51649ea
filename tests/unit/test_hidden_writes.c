/* Kernels that write where nothing tells of it, at any moment of a migration: with what is on by
 * default no write is lost.
 *
 * The device completes work at random times, and a kernel writes when it is completed. */
#include "migrate/move/migration.h"

#include <stdlib.h>

#include "pool_fixture.h"
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
    size_t moved; /* granules */
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

        vm->violations += !fake_vm_usable(vm, kernel->address, GRANULE);
        fake_vm_write(vm, kernel->address, GRANULE, kernel->value);
    }
}

static void open_program(uint64_t seed)
{
    bool moves;

    p = (struct program){.seed = seed, .first_seed = seed};
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
                                       .log = &p.log};
    p.pool.vm.seed = seed * 2 + 1;
    p.pool.vm.on_finished = run_kernels;
}

/* Submits a call that writes to one granule. A kernel names another block; a memset names this one;
 * of other calls nothing is known. */
static void submit(void)
{
    size_t block = draw(BLOCKS), granule = draw(GRANULES), kind = draw(10);
    uint64_t address = p.blocks[block] + granule * GRANULE;
    uint64_t named = kind < 7 ? p.blocks[draw(BLOCKS)] : address;

    if (p.submitted == KERNELS) {
        return;
    }
    spw_migrate_barrier_acquire();
    if (kind < 9) {
        spw_migrate_access_log_record(&p.log, &named, 1, /* kernel */ kind < 7);
    }
    p.expected[block][granule] = 100000 + p.submitted;
    p.kernels[p.submitted] = (struct kernel){.time = fake_vm_submit(&p.pool.vm),
                                             .address = address,
                                             .value = p.expected[block][granule]};
    p.submitted++;
    spw_migrate_barrier_release();
}

static void begin(void)
{
    struct spw_move_place places[2 * GRANULES * 2];
    struct spw_move_request wish = {.places = places};

    for (size_t i = 0; i < 2; i++) {
        size_t block = draw(BLOCKS);
        enum spw_tier to = draw(2) == 0 ? SPW_TIER_HOST : SPW_TIER_DEVICE;

        for (size_t k = 0; k < GRANULES; k++) {
            places[wish.count++] = (struct spw_move_place){
                .block = p.blocks[block], .granule = p.blocks[block] + k * GRANULE, .to = to};
        }
    }
    (void)spw_migrate_migration_begin(&p.migrator, &wish, /* predicted */ draw(2) == 0,
                                      /* since */ NULL);
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
    spw_migrate_access_log_close(&p.log);
    assert_int_equal(p.completed, p.submitted);
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t k = 0; k < GRANULES; k++) {
            if (fake_vm_differs(&p.pool.vm, p.blocks[i] + k * GRANULE, GRANULE, p.expected[i][k])) {
                fail_msg("a write was lost: SEED=%llu", (unsigned long long)p.first_seed);
            }
        }
    }
    pool_close(&p.pool);
}

static void run(uint64_t seed)
{
    open_program(seed);
    for (size_t step = 0; step < STEPS; step++) {
        uint64_t what = draw(10);

        if (what < 4) {
            begin();
        } else if (what < 8) {
            submit();
        } else {
            finish();
        }
    }
    close_program();
}

static uint64_t seeds = SEEDS;

/* With SEED in the environment, that one only. */
static void test_no_write_is_lost(void **state)
{
    const char *only = getenv("SEED");
    uint64_t moved = 0, again = 0;

    if (only != NULL) {
        run(strtoull(only, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run(seed);
        moved += p.moved;
        again += spw_counter_get(&p.pool.counters.second_copies);
    }
    assert_true(moved > seeds);
    assert_true(again > seeds / 4);
}

/* test_hidden_writes [SEEDS] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_write_is_lost)};

    if (argc > 1) {
        seeds = strtoull(argv[1], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
