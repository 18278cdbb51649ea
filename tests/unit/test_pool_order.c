/* Stream order: which memory may be reused where, and when. */
#include "pool_fixture.h"

#include <pthread.h>

#include "pool/alloc/state.h"

enum { BIG = 8 * GRANULE };

/* Opens a pool that must reuse memory if it can: no growth, and no room for a second block. */
static void open_tight(struct pool_fixture *fixture)
{
    pool_open_small(fixture, 256, BIG / GRANULE, 0);
}

static void test_same_stream_reuses_at_once(void **state)
{
    struct pool_fixture f;
    uint64_t address;
    size_t calls;

    pool_open(&f, 100);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    calls = fake_vm_calls(&f.vm);
    assert_int_equal(pool_alloc(&f, BIG, &stream_a), address);
    assert_int_equal(fake_vm_calls(&f.vm), calls); /* no query and no wait */
    pool_close(&f);
}

static void test_other_stream_reuses_when_complete(void **state)
{
    struct pool_fixture f;
    uint64_t address, other;

    pool_open(&f, 1000);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    other = pool_alloc(&f, BIG, &stream_b); /* within the allowance: other memory */
    assert_true(other != address);
    pool_free(&f, other, &stream_b);
    fake_vm_complete_stream(&f.vm, stream_a.id);
    assert_int_equal(pool_alloc(&f, BIG, &stream_c), address); /* a miss polls the fences */
    pool_memory_calls(&f);
    assert_int_equal(pool_alloc(&f, BIG, &stream_b), other);
    assert_int_equal(pool_memory_calls(&f), 0);
    assert_int_equal(f.vm.calls[FAKE_WAIT_STREAM], 0);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 0);
    pool_close(&f);
}

static void test_other_stream_is_made_to_wait(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tight(&f);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    assert_int_equal(pool_alloc(&f, BIG, &stream_b), address);
    assert_int_equal(f.vm.calls[FAKE_WAIT_STREAM], 1);
    assert_int_equal(f.vm.waiting_stream, stream_b.id);
    assert_int_equal(f.vm.waited_stream, stream_a.id);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 0);
    assert_int_equal(spw_counter_get(&f.counters.stream_waits), 1);
    pool_close(&f);
}

/* B was made to wait for the block it got only: the rest still belongs to A. */
static void test_rest_stays_with_its_stream(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tight(&f);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    assert_int_equal(pool_alloc(&f, BIG / 2, &stream_b), address);
    assert_int_equal(pool_alloc(&f, BIG / 4, &stream_a), address + BIG / 2);
    assert_int_equal(f.vm.calls[FAKE_WAIT_STREAM], 1);
    assert_int_equal(pool_alloc(&f, BIG / 4, &stream_c), address + BIG / 4 * 3);
    assert_int_equal(f.vm.calls[FAKE_WAIT_STREAM], 2);
    assert_int_equal(f.vm.waiting_stream, stream_c.id);
    pool_close(&f);
}

static void test_unordered_gets_no_pending_memory(void **state)
{
    struct pool_fixture f;
    uint64_t address, other;

    pool_open(&f, 2000);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    other = pool_alloc(&f, BIG, NULL);
    assert_true(other != address);
    assert_int_equal(f.vm.calls[FAKE_WAIT_STREAM], 0);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 0);
    fake_vm_complete(&f.vm);
    assert_int_equal(pool_alloc(&f, BIG, NULL), address);
    pool_close(&f);
}

static void test_unordered_waits_on_the_host_when_it_must(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tight(&f);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    assert_int_equal(pool_alloc(&f, BIG, NULL), address);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 1);
    assert_int_equal(spw_counter_get(&f.counters.host_waits), 1);
    pool_close(&f);
}

/* cuMemFree: nothing is reused before everything submitted to the device is done. */
static void test_free_without_stream_waits_for_all(void **state)
{
    struct pool_fixture f;
    uint64_t address, other;

    pool_open(&f, 2000);
    address = pool_alloc(&f, BIG, NULL);
    pool_free(&f, address, NULL);
    other = pool_alloc(&f, BIG, NULL);
    assert_true(other != address);
    assert_int_equal(f.vm.fenced_stream, SPW_STREAM_ALL);
    assert_true(pool_alloc(&f, BIG, &stream_a) != address);
    fake_vm_complete(&f.vm);
    assert_int_equal(pool_alloc(&f, BIG, NULL), address);
    pool_close(&f);
}

static void test_stream_waits_for_free_without_stream(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tight(&f);
    address = pool_alloc(&f, BIG, NULL);
    pool_free(&f, address, NULL);
    assert_int_equal(pool_alloc(&f, BIG, &stream_a), address);
    assert_int_equal(f.vm.waiting_stream, stream_a.id);
    assert_int_equal(f.vm.waited_stream, SPW_STREAM_ALL);
    pool_close(&f);
}

/* Blocks allocated with or without a stream, freed with or without: only the free counts. */
static void test_four_pairings(void **state)
{
    static const struct {
        const struct spw_stream *alloc, *free;
        bool again_on_a, again_on_b, again_unordered; /* at once, with the work pending */
    } cases[] = {
        {&stream_a, &stream_a, true, false, false},
        {&stream_a, NULL, false, false, false},
        {NULL, &stream_a, true, false, false},
        {NULL, NULL, false, false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct spw_stream *streams[] = {&stream_a, &stream_b, NULL};
        bool expected[] = {cases[i].again_on_a, cases[i].again_on_b, cases[i].again_unordered};

        for (int k = 0; k < 3; k++) {
            struct pool_fixture f;
            struct spw_block block;
            uint64_t address;

            pool_open(&f, 2000);
            address = pool_alloc(&f, BIG, cases[i].alloc);
            assert_true(spw_pool_find(f.pool, address, &block));
            assert_int_equal(block.ordered, cases[i].alloc != NULL);
            assert_int_equal(block.stream_id, cases[i].alloc != NULL ? cases[i].alloc->id : 0);
            pool_free(&f, address, cases[i].free);
            assert_int_equal(pool_alloc(&f, BIG, streams[k]) == address, expected[k]);
            pool_close(&f);
        }
    }
}

static void test_ordered_bytes_are_those_of_streams(void **state)
{
    struct pool_fixture f;
    struct spw_pool_usage usage;
    uint64_t ordered, unordered;

    pool_open(&f, 100);
    ordered = pool_alloc(&f, 1000, &stream_a);
    unordered = pool_alloc(&f, 5000, NULL);
    spw_pool_usage(f.pool, &usage);
    assert_int_equal(usage.ordered_live, 1024);
    assert_int_equal(usage.live, 1024 + 5120);
    pool_free(&f, ordered, NULL);
    pool_free(&f, unordered, &stream_a);
    spw_pool_usage(f.pool, &usage);
    assert_int_equal(usage.ordered_live, 0);
    assert_int_equal(usage.live, 0);
    assert_int_equal(spw_counter_get(&f.counters.async_live_peak_bytes), 1024);
    spw_pool_reset_ordered_peak(f.pool);
    assert_int_equal(spw_counter_get(&f.counters.async_live_peak_bytes), 0);
    pool_close(&f);
}

/* ---- waits of the program ---- */

static void test_wait_for_a_stream_is_known(void **state)
{
    struct pool_fixture f;
    uint64_t on_a, on_b, clock;

    pool_open(&f, 2000);
    on_a = pool_alloc(&f, BIG, &stream_a);
    on_b = pool_alloc(&f, BIG, &stream_b);
    pool_free(&f, on_a, &stream_a);
    pool_free(&f, on_b, &stream_b);
    clock = spw_pool_clock(f.pool);
    spw_pool_synchronized(f.pool, &stream_a, clock);
    pool_check(&f);
    assert_int_equal(pool_alloc(&f, BIG, NULL), on_a);
    assert_true(pool_alloc(&f, BIG, NULL) != on_b);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 0);
    pool_close(&f);
}

static void test_wait_for_the_device_is_known(void **state)
{
    struct pool_fixture f;
    uint64_t on_a, unordered;
    size_t calls;

    pool_open(&f, 2000);
    on_a = pool_alloc(&f, BIG, &stream_a);
    unordered = pool_alloc(&f, BIG, NULL);
    pool_free(&f, on_a, &stream_a);
    pool_free(&f, unordered, NULL);
    calls = fake_vm_calls(&f.vm);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    pool_check(&f);
    assert_int_equal(pool_alloc(&f, 2 * BIG, NULL), on_a);
    assert_int_equal(fake_vm_calls(&f.vm), calls);
    pool_close(&f);
}

/* Memory freed while the program waits is not covered. */
static void test_wait_covers_what_was_freed_before(void **state)
{
    struct pool_fixture f;
    uint64_t before, after, clock;

    pool_open(&f, 2000);
    before = pool_alloc(&f, BIG, &stream_a);
    (void)pool_alloc(&f, BIG, &stream_a);
    after = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, before, &stream_a);
    clock = spw_pool_clock(f.pool);
    pool_free(&f, after, &stream_a);
    spw_pool_synchronized(f.pool, &stream_a, clock);
    pool_check(&f);
    assert_int_equal(pool_alloc(&f, BIG, NULL), before);
    assert_true(pool_alloc(&f, BIG, NULL) != after);
    spw_pool_synchronized(f.pool, &stream_c, clock); /* a stream that was never seen */
    spw_pool_synchronized(f.pool, NULL, clock);
    pool_check(&f);
    pool_close(&f);
}

/* Fences that became needless by a wait of the program are dropped, and the queue of a destroyed
 * stream can serve another one. */
static void test_wait_makes_fences_needless(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open(&f, 2000);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    spw_pool_retire_stream(f.pool, &stream_a);
    assert_int_equal(f.vm.live_fences, 1);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    assert_int_equal(f.vm.live_fences, 0);
    (void)pool_alloc(&f, BIG, &stream_b);
    spw_pool_synchronized(f.pool, &stream_a, spw_pool_clock(f.pool));
    pool_close(&f);
}

/* ---- streams that go ---- */

static void test_retired_stream_without_frees_leaves_nothing(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 100);
    spw_pool_retire_stream(f.pool, &stream_b); /* never seen */
    (void)pool_alloc(&f, BIG, &stream_a);
    spw_pool_retire_stream(f.pool, &stream_a);
    pool_check(&f);
    assert_int_equal(f.vm.calls[FAKE_FENCE], 0);
    pool_close(&f);
}

static void test_retired_stream_keeps_the_order(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tight(&f);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    spw_pool_retire_stream(f.pool, &stream_a);
    assert_int_equal(f.vm.calls[FAKE_FENCE], 1);
    assert_int_equal(f.vm.fenced_stream, stream_a.id);
    f.vm.stream_gone[stream_a.id] = true; /* its handle is invalid from now on */
    assert_int_equal(pool_alloc(&f, BIG, &stream_b), address);
    assert_int_equal(f.vm.waited_stream, stream_a.id);
    pool_close(&f);
}

static void test_recycled_handle_is_another_stream(void **state)
{
    struct pool_fixture f;
    struct spw_stream heir = {.id = 9, .handle = stream_a.handle};
    uint64_t address;

    pool_open(&f, 2000);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    spw_pool_retire_stream(f.pool, &stream_a);
    f.vm.stream_gone[stream_a.id] = true;
    assert_true(pool_alloc(&f, BIG, &heir) != address); /* the old stream's work is pending */
    fake_vm_complete(&f.vm);
    assert_int_equal(pool_alloc(&f, BIG, &heir), address);
    pool_close(&f);
}

/* A capture forbids the fence when the stream is destroyed: the next fence must cover the device.
 */
static void test_stream_retired_in_a_capture(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tight(&f);
    address = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, address, &stream_a);
    f.vm.capturing = true;
    spw_pool_retire_stream(f.pool, &stream_a);
    f.vm.stream_gone[stream_a.id] = true;
    pool_refuse(&f, BIG, &stream_b, SPW_E_LIMIT);
    f.vm.capturing = false;
    assert_int_equal(pool_alloc(&f, BIG, &stream_b), address);
    assert_int_equal(f.vm.waited_stream, SPW_STREAM_ALL);
    pool_close(&f);
}

/* Queues of destroyed streams serve new ones; otherwise a million streams would need a million. */
static void test_many_short_lived_streams(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 100);
    f.vm.immediate = true;
    for (uint64_t i = 0; i < 2000; i++) {
        struct spw_stream stream = {.id = 1000 + i, .handle = &f};
        uint64_t address = pool_alloc(&f, 100000, &stream);

        pool_free(&f, address, &stream);
        spw_pool_retire_stream(f.pool, &stream);
    }
    assert_int_equal(spw_counter_get(&f.counters.committed_bytes) / GRANULE, 1);
    pool_close(&f);
}

/* ---- contexts that go ---- */

/* Blocks without a stream are freed with their context; blocks of the default memory pool stay. */
static void test_lost_context(void **state)
{
    char ours, theirs;
    struct spw_stream stream = {.id = 7, .context = &ours};
    struct pool_fixture f;
    struct spw_block block;
    uint64_t blocks[5];
    size_t calls;

    pool_open(&f, 2000);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(
            pool_try(f.pool, BIG, i == 3 ? &stream : NULL, i == 4 ? &theirs : &ours, &blocks[i]),
            SPW_OK);
    }
    pool_free(&f, blocks[1], &stream);
    calls = fake_vm_calls(&f.vm);
    spw_pool_free_context(f.pool, &ours);
    pool_check(&f);
    assert_int_equal(fake_vm_calls(&f.vm), calls);
    assert_false(spw_pool_find(f.pool, blocks[0], &block));
    assert_false(spw_pool_find(f.pool, blocks[2], &block));
    assert_true(spw_pool_find(f.pool, blocks[3], &block));
    assert_true(spw_pool_find(f.pool, blocks[4], &block));
    assert_int_equal(spw_counter_get(&f.counters.live_bytes), 2 * BIG);
    assert_int_equal(pool_alloc(&f, 3 * BIG, NULL), blocks[0]); /* its work is complete */
    assert_int_equal(fake_vm_calls(&f.vm), calls);
    pool_close(&f);
}

/* The queues of a context that goes are free for other streams. With one stream left, idle memory
 * joins that stream's own. */
static void test_queues_of_a_lost_context(void **state)
{
    char ours, theirs;
    const struct spw_stream gone = {.id = 7, .context = &ours},
                            left = {.id = 8, .context = &theirs};
    uint64_t first, second, misses;
    struct pool_fixture f;

    pool_open(&f, 2000);
    pool_free(&f, pool_alloc(&f, 512, &gone), &gone);
    spw_pool_free_context(f.pool, &ours);
    first = pool_alloc(&f, BIG, &left);
    second = pool_alloc(&f, BIG, &left);
    assert_int_equal(second, first + BIG);
    pool_free(&f, first, &left);
    spw_pool_synchronized(f.pool, &left, spw_pool_clock(f.pool));
    pool_free(&f, second, &left); /* its work is pending */
    misses = spw_counter_get(&f.counters.misses);
    assert_int_equal(pool_alloc(&f, 2 * BIG, &left), first);
    assert_int_equal(spw_counter_get(&f.counters.misses), misses);
    pool_close(&f);
}

/* A wait for a context covers its streams, but not those of others, nor frees without a stream. */
static void test_wait_for_a_context_is_known(void **state)
{
    char ours, theirs;
    const struct spw_stream own[] = {{.id = 7, .context = &ours}, {.id = 8, .context = &ours}};
    const struct spw_stream other = {.id = 9, .context = &theirs};
    const struct spw_stream *const streams[] = {&own[0], &own[1], &other, NULL, &own[0]};
    uint64_t blocks[5], next, clock = 0;
    struct pool_fixture f;
    size_t calls;

    pool_open(&f, 2000);
    for (size_t i = 0; i < 5; i++) {
        blocks[i] = pool_alloc(&f, BIG, streams[i]);
        (void)pool_alloc(&f, GRANULE, streams[i]); /* so that free blocks do not join */
    }
    for (size_t i = 0; i < 5; i++) {
        clock = i == 4 ? spw_pool_clock(f.pool) : 0; /* the last one is freed during the wait */
        pool_free(&f, blocks[i], streams[i]);
    }
    spw_pool_context_synchronized(f.pool, &ours, clock);
    pool_check(&f);
    calls = fake_vm_memory_calls(&f.vm);
    assert_int_equal(pool_alloc(&f, BIG, &stream_c), blocks[0]);
    assert_int_equal(pool_alloc(&f, BIG, &stream_c), blocks[1]);
    assert_int_equal(fake_vm_memory_calls(&f.vm), calls);
    next = pool_alloc(&f, BIG, &stream_c);
    for (size_t i = 2; i < 5; i++) {
        assert_true(next != blocks[i]);
    }
    assert_int_equal(f.vm.calls[FAKE_WAIT_STREAM] + f.vm.calls[FAKE_WAIT_HOST], 0);
    pool_close(&f);
}

/* Memory that a stream adopts is complete with a fence of it that follows the wait: an earlier one
 * does not cover the other stream's work. */
static void test_adopted_memory(void **state)
{
    struct spw_stream_queue *queue;
    struct pool_fixture f;
    uint64_t other, own;

    pool_open(&f, 2000);
    other = pool_alloc(&f, BIG, &stream_b);
    (void)pool_alloc(&f, GRANULE, &stream_b);
    own = pool_alloc(&f, BIG, &stream_a);
    pool_free(&f, other, &stream_b);
    pool_free(&f, own, &stream_a);
    queue = spw_pool_stream_queue_known(&f.pool->queues, stream_a.id);
    assert_int_equal(spw_pool_stream_queue_fence(&f.pool->queues, queue), SPW_OK);
    spw_pool_space_adopt(&f.pool->space, spw_pool_space_find(&f.pool->space, other), queue);
    pool_check(&f);
    fake_vm_complete_stream(&f.vm, stream_a.id);
    assert_int_equal(pool_alloc(&f, BIG, &stream_c), own);
    assert_true(pool_alloc(&f, BIG, &stream_c) != other);
    fake_vm_complete(&f.vm);
    assert_int_equal(pool_alloc(&f, BIG, &stream_c), other);
    pool_close(&f);
}

/* ---- streams of threads ---- */

struct visitor {
    struct pool_fixture *fixture;
    uint64_t bytes, address;
    const struct spw_stream *stream;
};

static void *visit(void *argument)
{
    struct visitor *visitor = argument;

    if (visitor->address != 0) {
        assert_int_equal(spw_pool_free(visitor->fixture->pool, visitor->address, visitor->stream),
                         SPW_OK);
        return NULL;
    }
    assert_int_equal(
        pool_try(visitor->fixture->pool, visitor->bytes, visitor->stream, NULL, &visitor->address),
        SPW_OK);
    return NULL;
}

static void in_thread(struct visitor *visitor)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, visit, visitor), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The per-thread stream has no handle in other threads: a fence recorded there must cover the
 * device. */
static void test_stream_of_another_thread(void **state)
{
    static const struct spw_stream theirs = {.id = 5, .thread_bound = true};
    static const struct spw_stream mine = {.id = 6, .thread_bound = true};
    struct pool_fixture f;
    struct visitor visitor = {.fixture = &f, .bytes = BIG, .stream = &theirs};
    uint64_t address;

    open_tight(&f);
    in_thread(&visitor); /* allocates */
    in_thread(&visitor); /* frees */
    address = pool_alloc(&f, BIG, &mine);
    assert_int_equal(address, visitor.address);
    assert_int_equal(f.vm.waited_stream, SPW_STREAM_ALL);
    pool_free(&f, address, &mine);
    address = pool_alloc(&f, BIG, &stream_a);
    assert_int_equal(f.vm.waited_stream, mine.id);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_stream_reuses_at_once),
        cmocka_unit_test(test_other_stream_reuses_when_complete),
        cmocka_unit_test(test_other_stream_is_made_to_wait),
        cmocka_unit_test(test_rest_stays_with_its_stream),
        cmocka_unit_test(test_unordered_gets_no_pending_memory),
        cmocka_unit_test(test_unordered_waits_on_the_host_when_it_must),
        cmocka_unit_test(test_free_without_stream_waits_for_all),
        cmocka_unit_test(test_stream_waits_for_free_without_stream),
        cmocka_unit_test(test_four_pairings),
        cmocka_unit_test(test_ordered_bytes_are_those_of_streams),
        cmocka_unit_test(test_wait_for_a_stream_is_known),
        cmocka_unit_test(test_wait_for_the_device_is_known),
        cmocka_unit_test(test_wait_covers_what_was_freed_before),
        cmocka_unit_test(test_wait_makes_fences_needless),
        cmocka_unit_test(test_retired_stream_without_frees_leaves_nothing),
        cmocka_unit_test(test_retired_stream_keeps_the_order),
        cmocka_unit_test(test_recycled_handle_is_another_stream),
        cmocka_unit_test(test_stream_retired_in_a_capture),
        cmocka_unit_test(test_many_short_lived_streams),
        cmocka_unit_test(test_lost_context),
        cmocka_unit_test(test_stream_of_another_thread),
        cmocka_unit_test(test_queues_of_a_lost_context),
        cmocka_unit_test(test_wait_for_a_context_is_known),
        cmocka_unit_test(test_adopted_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
