/* Threads: several use one pool near its limit, while others query, trim and change the limit. Run
 * under ThreadSanitizer too. Each thread writes its number over the blocks that it holds, in a
 * shadow of the arena, so that a block handed out twice is noticed. */
#include "pool_fixture.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, BLOCKS = 40, STEPS = 20000, ARENA_GRANULES = 128, LIMIT_GRANULES = 40 };
enum { UNIT = 4096 }; /* of the shadow */

struct hammer {
    struct pool_fixture *fixture;
    _Atomic uint32_t *shadow;
    uint32_t name;
    uint64_t random;
    struct spw_stream stream;
    uint64_t addresses[BLOCKS], bytes[BLOCKS];
    size_t refused, twice;
};

static uint64_t draw(struct hammer *hammer, uint64_t bound)
{
    hammer->random = hammer->random * 6364136223846793005ull + 1442695040888963407ull;
    return (hammer->random >> 33) % bound;
}

/* Writes `to` over the units of a block, all of which must hold `from`. */
static void mark(struct hammer *hammer, size_t i, uint32_t from, uint32_t to)
{
    uint64_t first = (hammer->addresses[i] - hammer->fixture->vm.base) / UNIT;

    for (uint64_t unit = first; unit < first + hammer->bytes[i] / UNIT; unit++) {
        hammer->twice += atomic_exchange(&hammer->shadow[unit], to) != from;
    }
}

static void next_stream(struct hammer *hammer)
{
    spw_pool_retire_stream(hammer->fixture->pool, &hammer->stream);
    hammer->stream.id += THREADS;
}

static void step(struct hammer *hammer)
{
    struct spw_pool *pool = hammer->fixture->pool;
    size_t i = draw(hammer, BLOCKS);
    const struct spw_stream *stream = draw(hammer, 4) == 0 ? NULL : &hammer->stream;

    if (hammer->addresses[i] != 0) {
        mark(hammer, i, hammer->name, 0);
        hammer->twice += spw_pool_free(pool, hammer->addresses[i], stream) != SPW_OK;
        hammer->addresses[i] = 0;
        return;
    }
    /* Whole units larger than small blocks, so that the shadow is exact. */
    hammer->bytes[i] = (2 + draw(hammer, draw(hammer, 8) == 0 ? 1000 : 100)) * UNIT;
    if (pool_try(pool, hammer->bytes[i], stream, NULL, &hammer->addresses[i]) == SPW_OK) {
        mark(hammer, i, 0, hammer->name);
    } else {
        hammer->refused++;
    }
}

static void *hammer_on(void *argument)
{
    struct hammer *hammer = argument;

    for (int i = 0; i < STEPS; i++) {
        step(hammer);
        if (i % 500 == 499) {
            next_stream(hammer);
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (hammer->addresses[i] != 0) {
            mark(hammer, i, hammer->name, 0);
            hammer->twice +=
                spw_pool_free(hammer->fixture->pool, hammer->addresses[i], NULL) != SPW_OK;
        }
    }
    return NULL;
}

static void *bystander(void *argument)
{
    struct hammer *hammer = argument;
    struct spw_pool *pool = hammer->fixture->pool;

    for (int i = 0; i < STEPS / 10; i++) {
        uint64_t address = hammer->fixture->vm.base + draw(hammer, ARENA_GRANULES) * GRANULE;
        struct spw_pool_usage usage;
        struct spw_block block;

        if (spw_pool_find(pool, address + draw(hammer, GRANULE), &block)) {
            hammer->twice += block.bytes == 0;
        }
        spw_pool_usage(pool, &usage);
        hammer->twice += usage.spare > usage.committed;
        if (i % 16 == 0) {
            (void)spw_pool_trim(pool, draw(hammer, LIMIT_GRANULES) * GRANULE);
            spw_pool_set_limit(pool, (LIMIT_GRANULES / 2 + draw(hammer, LIMIT_GRANULES)) * GRANULE);
        }
        if (i % 64 == 0) {
            hammer->twice += spw_pool_check(pool) != NULL;
        }
        if (i % 32 == 0 && spw_pool_charge(pool, GRANULE, /* site */ 0, false) == SPW_OK) {
            spw_pool_discharge(pool, GRANULE, /* site */ 0);
        }
    }
    return NULL;
}

static void hammer_pool(uint64_t seed)
{
    struct pool_fixture f;
    struct hammer hammers[THREADS + 1] = {0};
    pthread_t threads[THREADS + 1];
    _Atomic uint32_t *shadow = calloc(ARENA_GRANULES * (GRANULE / UNIT), sizeof(_Atomic uint32_t));

    pool_open_small(&f, ARENA_GRANULES, LIMIT_GRANULES, 100);
    f.vm.seed = seed;
    for (uint32_t i = 0; i <= THREADS; i++) {
        hammers[i] = (struct hammer){.fixture = &f,
                                     .shadow = shadow,
                                     .name = i + 1,
                                     .random = seed * 100 + i,
                                     .stream = {.id = i + 1, .thread_bound = i % 2 != 0}};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < THREADS ? hammer_on : bystander, &hammers[i]), 0);
    }
    for (int i = 0; i <= THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(hammers[i].twice, 0);
    }
    pool_check(&f);
    assert_int_equal(spw_counter_get(&f.counters.live_bytes), 0);
    f.vm.immediate = true;
    (void)spw_pool_trim(f.pool, 0);
    assert_int_equal(f.vm.chunks, 0);
    pool_close(&f);
    free((void *)shadow);
}

static void test_with_delays(void **state)
{
    hammer_pool(11);
}

/* Nothing completes by itself: every other stream has to be waited for. */
static void test_with_waits_only(void **state)
{
    hammer_pool(0);
}

/* A thread that waits for the device must not hold up the others. */
struct waiting {
    struct pool_fixture *fixture;
    uint64_t address;
};

static void *wait_for_memory(void *argument)
{
    struct waiting *waiting = argument;

    assert_int_equal(pool_try(waiting->fixture->pool, 4 * GRANULE, NULL, NULL, &waiting->address),
                     SPW_OK);
    return NULL;
}

static void test_wait_holds_no_lock(void **state)
{
    struct pool_fixture f;
    struct waiting waiting = {.fixture = &f};
    pthread_t thread;
    uint64_t address;

    pool_open_small(&f, 64, 6, 0);
    address = pool_alloc(&f, 4 * GRANULE, &stream_a);
    pool_free(&f, address, &stream_a);
    fake_vm_hold_waits(&f.vm, true);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_memory, &waiting), 0);
    fake_vm_await_waiter(&f.vm);
    for (int i = 0; i < 100; i++) { /* would hang */
        pool_free(&f, pool_alloc(&f, 1000, &stream_b), &stream_b);
    }
    fake_vm_hold_waits(&f.vm, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiting.address, address);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_delays),
        cmocka_unit_test(test_with_waits_only),
        cmocka_unit_test(test_wait_holds_no_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
