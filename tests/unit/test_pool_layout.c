/* Layout: a step that repeats makes no memory call after some repetitions, on as little memory as
 * it allows; and what does not repeat is served as before. */
#include "pool_fixture.h"

#include <stdlib.h>
#include <string.h>

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

/* Runs a step; blocks of odd number are freed on `second`. `left_out`: a block that is not
 * allocated. Returns the memory calls. */
static size_t run_step(struct pool_fixture *f, const struct step *step,
                       const struct spw_stream *second, int left_out)
{
    uint64_t addresses[BLOCKS];

    (void)pool_memory_calls(f);
    for (int i = 0; i < EVENTS; i++) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated_step),
        cmocka_unit_test(test_blocks_that_stay),
        cmocka_unit_test(test_deviation),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_no_repetition),
        cmocka_unit_test(test_late_repetition),
        cmocka_unit_test(test_memory_of_another_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
