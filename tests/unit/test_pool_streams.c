/* Tens of thousands of streams: what one of them takes, and how many others a step looks at. */
#include "pool_fixture.h"

#include <malloc.h>
#include <stdlib.h>

#include "pool/alloc/state.h"

enum { STREAMS = 20000, BLOCK = 4096, LOOKED_AT = 4000, EMPTY_BYTES = 2048 };

static struct spw_stream nth(int i)
{
    return (struct spw_stream){.id = (uint64_t)i + 1, .handle = (void *)(uintptr_t)(i + 1000)};
}

/* Bytes that malloc has given out. */
static size_t in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Allocates and frees on a stream. Returns the queues that were looked at. */
static uint64_t use(struct pool_fixture *f, const struct spw_stream *stream)
{
    uint64_t before = f->pool->queues.visits, address;

    assert_int_equal(pool_try(f->pool, BLOCK, stream, NULL, &address), SPW_OK);
    assert_int_equal(spw_pool_free(f->pool, address, stream), SPW_OK);
    return f->pool->queues.visits - before;
}

static void use_all(struct pool_fixture *f)
{
    for (int i = 0; i < STREAMS; i++) {
        struct spw_stream stream = nth(i);

        assert_in_range(use(f, &stream), 0, LOOKED_AT);
    }
}

static void open_small(struct pool_fixture *f)
{
    /* A stream leaves a block of 4 KiB behind: all of them together are larger than the limit. */
    pool_open_small(f, 1024, 8, 100);
}

/* Nothing is complete: each stream needs memory of its own, or waits for another one. */
static void test_pending_work_on_all(void **state)
{
    struct pool_fixture f;

    open_small(&f);
    use_all(&f);
    use_all(&f);
    assert_int_equal(f.pool->queues.streams, STREAMS);
    fake_vm_complete(&f.vm);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    assert_int_equal(f.pool->queues.lists[SPW_QUEUES_BUSY].count, 0);
    use_all(&f);
    pool_close(&f);
}

static void test_memory_of_a_stream_and_its_end(void **state)
{
    struct pool_fixture f;
    size_t before, all;

    open_small(&f);
    before = in_use();
    for (int round = 0; round < 3; round++) {
        use_all(&f);
        fake_vm_complete(&f.vm);
        spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
        all = in_use() - before;
        assert_in_range(all, 0, (size_t)STREAMS * EMPTY_BYTES);
        for (int i = 0; i < STREAMS; i++) {
            uint64_t visits = f.pool->queues.visits;
            struct spw_stream stream = nth(i);

            spw_pool_retire_stream(f.pool, &stream);
            assert_in_range(f.pool->queues.visits - visits, 0, LOOKED_AT);
        }
        assert_int_equal(f.pool->queues.streams, 0);
        /* The queues serve the next streams: there are never more. */
        assert_int_equal(f.pool->queues.count, STREAMS + SPW_STREAM_QUEUE_FIRST_STREAM);
    }
    pool_close(&f);
}

/* Many free extents of one stream go into bins, which are given back when it has none. */
static void test_bins_come_and_go(void **state)
{
    enum { BLOCKS = 40 };
    uint64_t addresses[2 * BLOCKS];
    struct spw_stream_queue *queue;
    struct spw_stream stream = nth(0);
    struct pool_fixture f;

    pool_open(&f, 100);
    for (int i = 0; i < 2 * BLOCKS; i++) {
        addresses[i] = pool_alloc(&f, BLOCK, &stream);
    }
    queue = spw_pool_stream_queue_known(&f.pool->queues, stream.id);
    for (int i = 0; i < 2 * BLOCKS; i += 2) {
        pool_free(&f, addresses[i], &stream);
        pool_check(&f);
        assert_int_equal(spw_pool_shelf_count(&queue->shelves[SPW_HEAP_SMALL]), i / 2 + 1);
    }
    assert_non_null(queue->shelves[SPW_HEAP_SMALL].bins);
    fake_vm_complete(&f.vm);
    spw_pool_synchronized(f.pool, &stream, spw_pool_clock(f.pool));
    pool_check(&f);
    assert_null(queue->shelves[SPW_HEAP_SMALL].bins);
    for (int i = 1; i < 2 * BLOCKS; i += 2) {
        pool_free(&f, addresses[i], &stream);
    }
    pool_close(&f);
}

/* Steals look at some of the streams with pending work only, and at all idle memory. */
static void test_steal_beside_many(void **state)
{
    struct pool_fixture f;
    struct spw_stream first = nth(0);
    uint64_t before, address;

    open_small(&f);
    for (int i = 1; i < STREAMS; i++) {
        struct spw_stream stream = nth(i);

        (void)use(&f, &stream);
    }
    fake_vm_complete(&f.vm);
    f.vm.immediate = true;
    before = f.pool->queues.visits;
    /* All that is left: what the others freed is complete by now. */
    assert_int_equal(pool_try(f.pool, 7 * GRANULE, &first, NULL, &address), SPW_OK);
    assert_in_range(f.pool->queues.visits - before, 0, (uint64_t)STREAMS + LOOKED_AT);
    pool_free(&f, address, &first);
    pool_close(&f);
}

/* Work of thousands of streams does not end, as it waits for what the program does next. The memory
 * of one that has ended is found nevertheless. */
static void test_one_is_complete_among_many(void **state)
{
    enum { STUCK = 3000, ENDED = 2 };
    struct spw_stream ended = {.id = ENDED, .handle = (void *)(uintptr_t)ENDED}, stream;
    uint64_t addresses[STUCK], address;
    struct pool_fixture f;

    pool_open_small(&f, 4096, STUCK + 1, 100);
    for (int i = 0; i < STUCK; i++) {
        stream = nth(i * FAKE_STREAMS); /* to the device they are one */
        assert_int_equal(pool_try(f.pool, GRANULE, &stream, NULL, &addresses[i]), SPW_OK);
    }
    assert_int_equal(pool_try(f.pool, GRANULE, &ended, NULL, &address), SPW_OK);
    for (int i = 0; i < STUCK; i++) {
        stream = nth(i * FAKE_STREAMS);
        assert_int_equal(spw_pool_free(f.pool, addresses[i], &stream), SPW_OK);
    }
    assert_int_equal(spw_pool_free(f.pool, address, &ended), SPW_OK);
    f.vm.stream_finished[ENDED] = UINT64_MAX;
    f.vm.fail_call = FAKE_WAIT_HOST;
    f.vm.fail_more = SIZE_MAX;
    address = pool_alloc(&f, GRANULE, NULL);
    f.vm.fail_call = -1;
    pool_free(&f, address, NULL);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pending_work_on_all),
        cmocka_unit_test(test_memory_of_a_stream_and_its_end),
        cmocka_unit_test(test_bins_come_and_go),
        cmocka_unit_test(test_one_is_complete_among_many),
        cmocka_unit_test(test_steal_beside_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
