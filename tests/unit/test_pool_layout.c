/* Layout: a step that repeats makes no memory call after some repetitions, on as little memory as
 * it allows; and what does not repeat is served as before. */
#include "pool_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "common/host_share.h"
#include "pool/alloc/state.h"
#include "pool/plan/layout.h"

enum { BLOCKS = 300, EVENTS = 2 * BLOCKS, KEPT = 20, OTHERS = 20 };

/* A step: so many blocks with their sizes, and in which order they are allocated and freed. */
struct step {
    uint64_t bytes[BLOCKS];
    struct event {
        uint32_t at;
        uint16_t block;
        bool frees;
    } events[EVENTS];
    uint64_t peak;
};

static int by_time(const void *a, const void *b)
{
    const struct event *left = a, *right = b;

    if (left->at != right->at) {
        return left->at < right->at ? -1 : 1;
    }
    return left->block < right->block ? -1 : left->block > right->block;
}

/* Blocks of up to 12 MiB that live up to 80 points in time. */
static void make_step(struct step *step, unsigned seed)
{
    uint64_t live = 0;

    srand(seed);
    memset(step, 0, sizeof(*step));
    for (uint16_t i = 0; i < BLOCKS; i++) {
        uint32_t begin = 2 * i + 1, length = 2 * (uint32_t)(rand() % 40) + 1;

        step->bytes[i] = (uint64_t)(rand() % 24000 + 16) * 512;
        step->events[2 * i] = (struct event){begin, i, false};
        step->events[2 * i + 1] = (struct event){begin + length, i, true};
    }
    qsort(step->events, EVENTS, sizeof(step->events[0]), by_time);
    for (int i = 0; i < EVENTS; i++) {
        const struct event *event = &step->events[i];

        live += event->frees ? -step->bytes[event->block] : step->bytes[event->block];
        step->peak = live > step->peak ? live : step->peak;
    }
}

/* Runs the events [first, end) of a step; blocks of odd number are freed on `second`. `left_out`: a
 * block that is not allocated. */
static void run_events(struct pool_fixture *f, const struct step *step, uint64_t *addresses,
                       int first, int end, const struct spw_stream *second, int left_out)
{
    for (int i = first; i < end; i++) {
        const struct event *event = &step->events[i];

        if (event->block == left_out) {
            continue;
        }
        if (event->frees) {
            pool_free(f, addresses[event->block], event->block % 2 == 0 ? &stream_a : second);
        } else {
            addresses[event->block] = pool_alloc(f, step->bytes[event->block], &stream_a);
        }
    }
}

/* Runs a step, as above. Returns the memory calls. */
static size_t run_step(struct pool_fixture *f, const struct step *step,
                       const struct spw_stream *second, int left_out)
{
    uint64_t addresses[BLOCKS];

    (void)pool_memory_calls(f);
    run_events(f, step, addresses, 0, EVENTS, second, left_out);
    return pool_memory_calls(f);
}

/* Opens a pool with an eighth more than the peak, on which blocks must be stolen from the first
 * step on. */
static void open_tight(struct pool_fixture *f, const struct step *step)
{
    uint64_t granules = (step->peak + step->peak / 8) / GRANULE + 1;

    pool_open_small(f, 20 * granules, granules, 0);
    f->vm.immediate = true;
}

static void test_repeated_step(void **state)
{
    for (unsigned seed = 1; seed <= 8; seed++) {
        struct pool_fixture f;
        struct step step;
        size_t calls = 0;

        make_step(&step, seed);
        open_tight(&f, &step);
        for (int i = 0; i < 8; i++) {
            calls = run_step(&f, &step, &stream_a, -1);
        }
        print_message("seed %u: %llu layouts, %zu calls\n", seed,
                      (unsigned long long)spw_counter_get(&f.counters.layouts), calls);
        assert_int_equal(calls, 0);
        assert_int_equal(spw_counter_get(&f.counters.layouts), 1);
        pool_close(&f);
    }
}

/* Blocks that stay, from before and from within the first step, keep their places. */
static void test_blocks_that_stay(void **state)
{
    uint64_t kept[KEPT];
    struct pool_fixture f;
    struct step step;
    size_t calls = 0;

    make_step(&step, 11);
    pool_open_small(&f, 40000, step.peak / GRANULE + KEPT + 24, 0);
    f.vm.immediate = true;
    for (size_t i = 0; i < KEPT; i++) {
        if (i == KEPT / 2) {
            (void)run_step(&f, &step, &stream_a, -1);
        }
        kept[i] = pool_alloc(&f, GRANULE + i * 512, &stream_a);
    }
    for (int i = 0; i < 8; i++) {
        calls = run_step(&f, &step, &stream_a, -1);
    }
    assert_int_equal(calls, 0);
    for (size_t i = 0; i < KEPT; i++) {
        pool_free(&f, kept[i], &stream_a);
    }
    pool_close(&f);
}

/* A block is missing, then the old step comes again: it is as quiet as before. */
static void test_deviation(void **state)
{
    struct pool_fixture f;
    struct step step;

    make_step(&step, 3);
    open_tight(&f, &step);
    for (int i = 0; i < 8; i++) {
        (void)run_step(&f, &step, &stream_a, -1);
    }
    (void)run_step(&f, &step, &stream_a, 77);
    (void)run_step(&f, &step, &stream_a, -1);
    assert_int_equal(run_step(&f, &step, &stream_a, -1), 0);
    assert_int_equal(spw_counter_get(&f.counters.layouts), 1);
    pool_close(&f);
}

/* Half of a step is left out, more than may be missing at once: the place in the plan is found
 * again by the sizes, and blocks behind it get their usual addresses, as far as those are free. The
 * step is soon as quiet as before, and no plan is made of one and a half steps, or of more. */
static void test_jump(void **state)
{
    enum { FROM = BLOCKS / 2, FOUND = FROM + 40, LEAST = 15, STEPS = 20, SETTLED = 2 };

    for (unsigned seed = 3; seed <= 6; seed++) {
        uint64_t usual[BLOCKS] = {0}, addresses[BLOCKS] = {0};
        struct pool_fixture f;
        struct step step;
        int same = 0;

        make_step(&step, seed);
        open_tight(&f, &step);
        for (int i = 0; i < 8; i++) {
            run_events(&f, &step, usual, 0, EVENTS, &stream_a, -1);
        }
        for (int i = 0; i < EVENTS; i++) {
            const struct event *event = &step.events[i];

            if (event->block >= FROM && event->frees) {
                pool_free(&f, addresses[event->block], &stream_a);
            } else if (event->block >= FROM) {
                addresses[event->block] = pool_alloc(&f, step.bytes[event->block], &stream_a);
            }
        }
        for (int i = FOUND; i < BLOCKS; i++) {
            same += addresses[i] == usual[i];
        }
        assert_in_range(same, LEAST, BLOCKS - FOUND);
        for (int i = 0; i < STEPS; i++) {
            size_t calls = run_step(&f, &step, &stream_a, -1);

            assert_true(i < SETTLED || calls == 0);
        }
        assert_int_equal(f.pool->layout.period, BLOCKS);
        assert_int_equal(spw_counter_get(&f.counters.layouts), 1);
        pool_close(&f);
    }
}

/* Another program follows: the plan is dropped, and another one is made. */
static void test_change(void **state)
{
    struct pool_fixture f;
    struct step first, second;
    size_t calls = 0;

    make_step(&first, 4);
    make_step(&second, 5);
    if (second.peak > first.peak) {
        second = first;
        make_step(&first, 5);
    }
    open_tight(&f, &first);
    for (int i = 0; i < 8; i++) {
        (void)run_step(&f, &first, &stream_a, -1);
    }
    for (int i = 0; i < 16; i++) {
        calls = run_step(&f, &second, &stream_a, -1);
    }
    assert_int_equal(calls, 0);
    pool_close(&f);
}

/* Steps that never repeat: no plan, and nothing is refused. */
static void test_no_repetition(void **state)
{
    struct pool_fixture f;
    struct step step;

    make_step(&step, 100);
    pool_open_small(&f, 40000, step.peak / GRANULE * 3 / 2, 0);
    f.vm.immediate = true;
    for (unsigned i = 0; i < 12; i++) {
        make_step(&step, 100 + i);
        (void)run_step(&f, &step, &stream_a, -1);
    }
    assert_int_equal(spw_counter_get(&f.counters.layouts), 0);
    pool_close(&f);
}

/* Searches that find nothing do not put off the plan for a step that repeats later. */
static void test_late_repetition(void **state)
{
    struct pool_fixture f;
    struct step steps[OTHERS], *step = steps;

    for (unsigned i = 0; i < OTHERS; i++) {
        make_step(&steps[i], 200 + i);
        step = steps[i].peak > step->peak ? &steps[i] : step;
    }
    open_tight(&f, step);
    for (unsigned i = 0; i < OTHERS; i++) {
        (void)run_step(&f, &steps[i], &stream_a, -1);
    }
    assert_int_equal(spw_counter_get(&f.counters.layouts), 0);
    for (int i = 0; i < 3; i++) {
        (void)run_step(&f, step, &stream_a, -1);
    }
    assert_int_equal(spw_counter_get(&f.counters.layouts), 1);
    pool_close(&f);
}

/* Memory that another stream freed, with work pending: the stream of the block waits for it. */
static void test_memory_of_another_stream(void **state)
{
    struct pool_fixture f;
    struct step step;
    size_t waits;

    make_step(&step, 6);
    open_tight(&f, &step);
    for (int i = 0; i < 8; i++) {
        (void)run_step(&f, &step, &stream_b, -1);
        fake_vm_complete(&f.vm);
    }
    f.vm.immediate = false;
    waits = f.vm.calls[FAKE_WAIT_STREAM];
    assert_int_equal(run_step(&f, &step, &stream_b, -1), 0);
    assert_true(f.vm.calls[FAKE_WAIT_STREAM] > waits);
    assert_int_equal(f.vm.waiting_stream, stream_a.id);
    assert_int_equal(f.vm.waited_stream, stream_b.id);
    fake_vm_complete(&f.vm);
    pool_close(&f);
}

/* ---- numbers of blocks that share a place ---- */

/* Uses up numbers of blocks: the next one has the same place in the table as that of the block at
 * `address`. */
static void skip_numbers(struct pool_fixture *f, uint64_t address)
{
    struct spw_block block, last;

    assert_true(spw_pool_find(f->pool, address, &block));
    do {
        uint64_t small = 0;

        assert_int_equal(pool_try(f->pool, 512, &stream_a, NULL, &small), SPW_OK);
        assert_true(spw_pool_find(f->pool, small, &last));
        assert_int_equal(spw_pool_free(f->pool, small, &stream_a), SPW_OK);
    } while (last.id + 1 < block.id + SPW_LAYOUT_RECORDS);
}

/* Runs a step and a part of the next one. With `replaced`, a block from before the step is replaced
 * late in it by one that stays. Returns the number of plans. */
static uint64_t plans_of(bool replaced)
{
    enum { LATE = EVENTS / 4 * 3, SIZE = 4 };
    uint64_t addresses[BLOCKS], old, granules;
    struct pool_fixture f;
    struct step step;

    make_step(&step, 3);
    granules = (step.peak + step.peak / 8) / GRANULE + 1 + 2 * SIZE;
    pool_open_small(&f, 20 * granules, granules, 0);
    f.vm.immediate = true;
    old = pool_alloc(&f, SIZE * GRANULE, &stream_a);
    run_events(&f, &step, addresses, 0, LATE, &stream_a, -1);
    if (replaced) {
        skip_numbers(&f, old);
        (void)pool_alloc(&f, SIZE * GRANULE, &stream_a);
        pool_free(&f, old, &stream_a);
    }
    run_events(&f, &step, addresses, LATE, EVENTS, &stream_a, -1);
    run_events(&f, &step, addresses, 0, LATE, &stream_a, -1);
    pool_close(&f);
    return spw_counter_get(&f.counters.layouts);
}

/* There is no plan as long as the end of a block is not known. An older block that had the same
 * place in the table of numbers, and ends, is another one. */
static void test_record_of_another_block(void **state)
{
    assert_int_equal(plans_of(/* replaced */ false), 1);
    assert_int_equal(plans_of(/* replaced */ true), 0);
}

/* ---- blocks that no plan may serve ---- */

static _Atomic uint64_t to_commit;

/* Opens a tight pool, with so many granules more, and follows the plan of a step whose first block
 * has at least four granules. That block is the next one. */
static void open_followed(struct pool_fixture *f, struct step *step, uint64_t more)
{
    unsigned seed = 300;
    uint64_t granules;

    do {
        make_step(step, seed++);
    } while (step->bytes[0] < 4 * GRANULE);
    granules = (step->peak + step->peak / 8) / GRANULE + 1 + more;
    to_commit = 0;
    pool_open_as(f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                              .arena_bytes = 20 * granules * GRANULE,
                                              .limit_bytes = granules * GRANULE,
                                              .to_commit = &to_commit});
    f->vm.immediate = true;
    spw_pool_set_host_limit(f->pool, 64ull * GRANULE);
}

static void follow(struct pool_fixture *f, const struct step *step)
{
    for (int i = 0; i < 8; i++) {
        (void)run_step(f, step, &stream_a, -1);
    }
    assert_int_equal(spw_counter_get(&f->counters.layouts), 1);
}

static uint64_t alloc_placed(struct pool_fixture *f, uint64_t bytes,
                             const struct spw_pool_placement *placement)
{
    const struct spw_request request = {
        .bytes = bytes, .stream = &stream_a, .placement = placement};
    struct spw_result result = {0};

    assert_int_equal(spw_pool_alloc(f->pool, &request, &result), SPW_OK);
    pool_check(f);
    return result.address;
}

static uint64_t planned(const struct pool_fixture *f)
{
    return spw_counter_get(&f->counters.planned_allocs);
}

/* A lazy block of the expected size gets its memory when it is committed. */
static void test_lazy_block(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .lazy = true};
    struct pool_fixture f;
    struct step step;
    uint64_t address, before;

    open_followed(&f, &step, 0);
    follow(&f, &step);
    before = planned(&f);
    address = alloc_placed(&f, step.bytes[0], &placement);
    assert_int_equal(planned(&f), before);
    assert_int_equal(to_commit, 1);
    assert_false(fake_vm_usable(&f.vm, address, step.bytes[0]));
    assert_int_equal(spw_pool_commit(f.pool, /* spilling */ false), SPW_OK);
    assert_true(fake_vm_usable(&f.vm, address, step.bytes[0]));
    pool_close(&f);
}

/* A block that is backed later counts in the record with what it holds, before and after, and one
 * that is not counted at first is in it when it is. */
static void test_live_of_lazy_blocks(void **state)
{
    const struct spw_pool_placement lazy = {.limit_bytes = UINT64_MAX, .lazy = true};
    const struct spw_pool_placement uncounted = {
        .limit_bytes = UINT64_MAX, .lazy = true, .uncounted = true};
    const struct spw_pool_placement *each[] = {&lazy, &uncounted};
    struct pool_fixture f;
    struct step step;
    uint64_t address;
    int64_t before;

    open_followed(&f, &step, 0);
    follow(&f, &step);
    before = f.pool->layout.live;
    for (size_t i = 0; i < 2; i++) {
        address = alloc_placed(&f, 5 * GRANULE / 2, each[i]);
        assert_int_equal(f.pool->layout.live, before + (i == 0 ? 5 * GRANULE / 2 : 0));
        assert_int_equal(spw_pool_commit(f.pool, /* spilling */ false), SPW_OK);
        assert_int_equal(f.pool->layout.live, before + 5 * GRANULE / 2);
        pool_free(&f, address, &stream_a);
        assert_int_equal(f.pool->layout.live, before);
        pool_free(&f, alloc_placed(&f, 5 * GRANULE / 2, each[i]), &stream_a); /* never backed */
        assert_int_equal(f.pool->layout.live, before);
    }
    pool_close(&f);
}

/* Half of a block of the expected size is on the host if its placement wants that. */
static void test_block_of_both_tiers(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .host_permille = 500};
    struct pool_fixture f;
    struct step step;
    uint64_t address, share;

    open_followed(&f, &step, 0);
    follow(&f, &step);
    share = spw_host_share_granules(step.bytes[0], 500, GRANULE);
    assert_true(share >= 2);
    address = alloc_placed(&f, step.bytes[0], &placement);
    assert_int_equal(fake_vm_on_host(&f.vm, address, step.bytes[0]), share);
    pool_close(&f);
}

/* A pool that is shut gives no block at its planned address. */
static void test_closed_pool(void **state)
{
    struct pool_fixture f;
    struct step step;
    size_t calls;

    open_followed(&f, &step, 0);
    follow(&f, &step);
    spw_pool_shut(f.pool);
    calls = fake_vm_calls(&f.vm);
    pool_refuse(&f, step.bytes[0], &stream_a, SPW_E_UNSUPPORTED);
    assert_int_equal(fake_vm_calls(&f.vm), calls);
    pool_close(&f);
}

/* While memory of the host is in use, migration places the blocks, and no plan does. */
static void test_no_plan_with_a_host_tier(void **state)
{
    const struct spw_pool_placement on_host = {.limit_bytes = UINT64_MAX, .on_host = true};
    struct pool_fixture f;
    struct step step;
    uint64_t before, others;

    open_followed(&f, &step, 0);
    follow(&f, &step);
    before = planned(&f);
    others = spw_counter_get(&f.counters.unplanned_allocs);
    assert_true(before > 0);
    (void)alloc_placed(&f, GRANULE, &on_host);
    (void)run_step(&f, &step, &stream_a, -1);
    assert_int_equal(planned(&f), before);
    assert_int_equal(spw_counter_get(&f.counters.unplanned_allocs), others);
    pool_close(&f);
}

/* Stealing spares the places of a plan, but not when that plan was dropped. */
static void test_places_of_a_dropped_plan(void **state)
{
    enum { LARGE = 400, LEFT = 4 };
    const struct spw_pool_placement on_host = {.limit_bytes = UINT64_MAX, .on_host = true};
    struct pool_fixture f;
    struct step step;
    uint64_t large;

    open_followed(&f, &step, LARGE + 1);
    large = pool_alloc(&f, (uint64_t)LARGE * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a); /* so that the free memory does not join */
    follow(&f, &step);
    (void)spw_pool_trim(f.pool, (uint64_t)(LARGE + 1 + LEFT) * GRANULE);
    assert_int_equal(f.vm.chunks, LARGE + 1 + LEFT); /* what is free is planned */
    spw_pool_set_limit(f.pool, (uint64_t)(LARGE + 1 + LEFT) * GRANULE);
    (void)alloc_placed(&f, GRANULE, &on_host);
    pool_free(&f, pool_alloc(&f, GRANULE, &stream_a), &stream_a); /* drops the plan */
    pool_free(&f, large, &stream_a);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    (void)pool_alloc(&f, 512, &stream_a); /* in another heap: it needs a chunk */
    assert_true(fake_vm_usable(&f.vm, large, (uint64_t)LARGE * GRANULE));
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated_step),
        cmocka_unit_test(test_blocks_that_stay),
        cmocka_unit_test(test_deviation),
        cmocka_unit_test(test_jump),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_no_repetition),
        cmocka_unit_test(test_late_repetition),
        cmocka_unit_test(test_memory_of_another_stream),
        cmocka_unit_test(test_lazy_block),
        cmocka_unit_test(test_live_of_lazy_blocks),
        cmocka_unit_test(test_block_of_both_tiers),
        cmocka_unit_test(test_closed_pool),
        cmocka_unit_test(test_no_plan_with_a_host_tier),
        cmocka_unit_test(test_places_of_a_dropped_plan),
        cmocka_unit_test(test_record_of_another_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
