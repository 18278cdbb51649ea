/* Blocks in page-locked memory of the host, for devices that cannot map chunks of it. */
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"
#include "pool_fixture.h"

enum { DEVICE = 8, HOST = 64 };

static void open_slabs_as(struct pool_fixture *f, uint64_t host_granules, bool apart)
{
    bool moves = true;

    pool_open_small(f, 256, DEVICE, 0);
    f->vm.no_host = true;
    f->vm.pins_apart = apart;
    assert_int_equal(spw_pool_open_host(f->pool, host_granules * GRANULE, &moves), SPW_OK);
    assert_false(moves);
    assert_true(spw_pool_uses_pinned(f->pool));
}

static void open_slabs(struct pool_fixture *f, uint64_t host_granules)
{
    open_slabs_as(f, host_granules, /* apart */ false);
}

static bool is_pinned(uint64_t address)
{
    return address >= FAKE_PINNED;
}

static enum spw_err try(struct pool_fixture *f, uint64_t bytes, const struct spw_stream *stream,
                        uint64_t *ret_address)
{
    uint64_t host_bytes = 0;
    enum spw_err err = pool_try_anywhere(f, bytes, stream, ret_address, &host_bytes);

    if (err == SPW_OK && is_pinned(*ret_address)) {
        assert_int_equal(host_bytes, (bytes + 511) / 512 * 512);
    } else if (err == SPW_OK) {
        assert_int_equal(host_bytes, 0);
    }
    return err;
}

static uint64_t alloc(struct pool_fixture *f, uint64_t bytes, const struct spw_stream *stream)
{
    uint64_t address = 0;

    assert_int_equal(try(f, bytes, stream, &address), SPW_OK);
    return address;
}

/* The device is full from here on. */
static uint64_t fill(struct pool_fixture *f)
{
    return pool_alloc(f, DEVICE * GRANULE, &stream_a);
}

static void test_device_first(void **state)
{
    struct pool_fixture f;

    open_slabs(&f, HOST);
    assert_false(is_pinned(alloc(&f, 6 * GRANULE, &stream_a)));
    /* The block is not split with the device: it is on the host as a whole. */
    assert_true(is_pinned(alloc(&f, 3 * GRANULE, &stream_a)));
    assert_false(is_pinned(alloc(&f, 2 * GRANULE, &stream_a)));
    assert_true(is_pinned(alloc(&f, 1, &stream_a)));
    pool_close(&f);
}

static void test_answers(void **state)
{
    struct spw_block block;
    struct pool_fixture f;
    uint64_t address, ordered = 0;

    open_slabs(&f, HOST);
    ordered = fill(&f);
    address = alloc(&f, 1000, &stream_a);
    assert_true(spw_pool_owns(f.pool, address));
    assert_true(spw_pool_find(f.pool, address + 999, &block));
    assert_true(block.ordered);
    assert_int_equal(block.address, address);
    assert_int_equal(block.bytes, 1000);
    assert_int_equal(block.stream_id, stream_a.id);
    assert_false(spw_pool_find(f.pool, address + 1000, &block));
    assert_false(spw_pool_find(f.pool, address + 4096, &block));
    assert_true(spw_pool_find(f.pool, ordered, &block));
    assert_false(is_pinned(block.address));
    assert_int_equal(
        spw_pool_set_attributes(f.pool, address + 1, 1,
                                &(struct spw_block_attributes){.fix = SPW_FIXED_BY_PROGRAM}),
        1);
    pool_free(&f, address, &stream_a);
    assert_false(spw_pool_find(f.pool, address, &block));
    assert_int_equal(spw_pool_free(f.pool, address, &stream_a), SPW_E_NOT_OURS);
    pool_close(&f);
}

/* The granules of page-locked memory that is held, in quarters. */
static uint64_t pinned_quarters(const struct pool_fixture *f)
{
    return f->vm.pinned_bytes / (GRANULE / 4);
}

/* Small blocks share slabs of 64 MiB, or of a part of the host's limit. Others, and those for which
 * the limit leaves no room for such a slab, have one of their own, of whole granules if possible.
 */
static void test_sizes_of_slabs(void **state)
{
    enum { LEAST = 32, LARGE_LIMIT = 256 * 33 + 128 };
    const struct {
        uint64_t limit; /* all in quarters of a granule */
        struct {
            uint64_t bytes, held;
        } blocks[9];
    } rows[] = {
        {4 * 100 + 1,
         {{4 * LEAST, 4 * LEAST},
          {4 * 8, 4 * 64},
          {4 * 24, 4 * 64},
          {4 * 8 + 1, 4 * 73},
          {4 * 9, 4 * 82},
          {4 * 8, 4 * 90},
          {4 * 10 + 1, 4 * 100 + 1}}},
        {4 * LARGE_LIMIT,
         {{4 * 33, 4 * 33},
          {4 * 8, 4 * 66},
          {4 * 25, 4 * 66},
          {4 * 8 + 1, 4 * 99},
          {4 * 25 - 1, 4 * 99},
          {4 * 8 + 2, 4 * 108}}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pool_fixture f;
        bool moves;

        pool_open_small(&f, 256, DEVICE, 0);
        f.vm.no_host = true;
        assert_int_equal(spw_pool_open_host(f.pool, rows[i].limit * (GRANULE / 4), &moves), SPW_OK);
        assert_int_equal(pinned_quarters(&f), rows[i].blocks[0].held); /* for the test of it */
        (void)fill(&f);
        for (size_t k = 0; rows[i].blocks[k].bytes != 0; k++) {
            (void)alloc(&f, rows[i].blocks[k].bytes * (GRANULE / 4), &stream_a);
            assert_int_equal(pinned_quarters(&f), rows[i].blocks[k].held);
        }
        pool_close(&f);
    }
}

/* The smallest free part of a slab that fits is taken; one that waits for work, by its own stream
 * alone. */
static void test_smallest_that_fits(void **state)
{
    const uint64_t granules[] = {4, 1, 2, 1, 3, 1};
    uint64_t blocks[6], other;
    struct pool_fixture f;

    open_slabs(&f, HOST);
    (void)fill(&f);
    for (size_t i = 0; i < 6; i++) {
        blocks[i] = alloc(&f, granules[i] * GRANULE, &stream_a);
    }
    for (size_t i = 0; i < 6; i += 2) {
        pool_free(&f, blocks[i], &stream_a);
    }
    f.vm.impatient = true;
    other = alloc(&f, 2 * GRANULE, &stream_b);
    assert_true(other > blocks[5]);
    assert_int_equal(alloc(&f, 2 * GRANULE, &stream_a), blocks[2]);
    pool_free(&f, blocks[2], &stream_a);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    assert_int_equal(alloc(&f, 3 * GRANULE, &stream_b), blocks[4]);
    assert_int_equal(alloc(&f, 2 * GRANULE, &stream_b), blocks[2]);
    assert_int_equal(alloc(&f, 4 * GRANULE, &stream_b), blocks[0]);
    pool_close(&f);
}

static void test_figures(void **state)
{
    struct spw_pool_usage usage;
    struct pool_fixture f;
    uint64_t address;

    open_slabs(&f, HOST);
    (void)fill(&f);
    address = alloc(&f, 3 * MIB, &stream_a);
    spw_pool_usage(f.pool, &usage);
    assert_int_equal(usage.live, DEVICE * GRANULE + 3 * MIB);
    assert_int_equal(usage.ordered_live, usage.live);
    assert_int_equal(usage.host, 3 * MIB);
    assert_int_equal(usage.spare, 0);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), 64 * MIB);
    assert_int_equal(spw_counter_get(&f.counters.host_used_bytes), 3 * MIB);
    assert_int_equal(spw_counter_get(&f.counters.reserved_peak_bytes), usage.live);
    pool_free(&f, address, &stream_a);
    assert_int_equal(spw_counter_get(&f.counters.host_used_bytes), 0);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), 64 * MIB);
    fake_vm_complete(&f.vm);
    f.vm.immediate = true;
    assert_int_equal(spw_pool_trim_host(f.pool), 64 * MIB);
    assert_int_equal(f.vm.pinned_pieces, 0);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), 0);
    assert_int_equal(spw_counter_get(&f.counters.host_peak_bytes), 64 * MIB);
    pool_close(&f);
}

/* Small blocks share a slab, a large one has its own, and neither goes beyond the limit. */
static void test_budget(void **state)
{
    struct pool_fixture f;
    uint64_t address, large;

    open_slabs(&f, 40);
    (void)fill(&f);
    (void)alloc(&f, MIB, &stream_a);
    assert_int_equal(f.vm.pinned_bytes, 64 * MIB);
    (void)alloc(&f, MIB, &stream_a);
    assert_int_equal(f.vm.pinned_pieces, 1);
    large = alloc(&f, 15 * MIB, &stream_a); /* a quarter of a slab fits into one */
    assert_int_equal(f.vm.pinned_pieces, 1);
    pool_free(&f, large, &stream_a);
    /* Sixteen granules are left: too few for a slab for several blocks, enough for this one alone.
     */
    large = alloc(&f, 62 * MIB - 512, &stream_b);
    assert_true(is_pinned(large));
    pool_close(&f);

    open_slabs(&f, 40);
    (void)fill(&f);
    large = alloc(&f, 66 * MIB + 512, &stream_a);
    assert_int_equal(f.vm.pinned_bytes, 68 * MIB);
    assert_int_equal(try(&f, 12 * MIB + 512, &stream_a, &address), SPW_E_LIMIT);
    (void)alloc(&f, 12 * MIB, &stream_a);
    assert_int_equal(f.vm.pinned_bytes, 80 * MIB);
    assert_int_equal(try(&f, 3 * MIB, &stream_a, &address), SPW_E_LIMIT);
    pool_close(&f);
}

/* Slabs without a block are released for a block that does not fit into them. */
static void test_slabs_make_room(void **state)
{
    struct pool_fixture f;
    uint64_t blocks[5];

    open_slabs(&f, 52);
    f.vm.immediate = true;
    (void)fill(&f);
    for (int i = 0; i < 5; i++) {
        blocks[i] = alloc(&f, 20 * MIB, &stream_a);
    }
    assert_int_equal(f.vm.pinned_pieces, 3);
    for (int i = 0; i < 5; i++) {
        pool_free(&f, blocks[i], &stream_a);
    }
    (void)alloc(&f, 70 * MIB, &stream_b);
    assert_int_equal(f.vm.pinned_pieces, 1);
    pool_close(&f);
}

static void test_order(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_slabs(&f, HOST);
    f.vm.impatient = true;
    (void)fill(&f);
    address = alloc(&f, 20 * MIB, &stream_a);
    pool_free(&f, address, &stream_a);
    /* Its stream may reuse it at once, another one when the work is done. */
    assert_int_equal(alloc(&f, 20 * MIB, &stream_a), address);
    pool_free(&f, address, &stream_a);
    assert_int_not_equal(alloc(&f, 20 * MIB, &stream_b), address);
    assert_int_not_equal(alloc(&f, 20 * MIB, NULL), address);
    fake_vm_complete(&f.vm);
    assert_int_equal(alloc(&f, 20 * MIB, &stream_b), address);
    /* Without a stream: after everything submitted so far. */
    pool_free(&f, address, NULL);
    assert_int_not_equal(alloc(&f, 20 * MIB, &stream_b), address);
    fake_vm_complete(&f.vm);
    assert_int_equal(alloc(&f, 20 * MIB, NULL), address);
    pool_close(&f);
}

static void test_contexts_go(void **state)
{
    struct pool_fixture f;
    uint64_t address[3];
    struct spw_block block;
    char contexts[2];

    open_slabs(&f, HOST);
    (void)fill(&f);
    for (int i = 0; i < 2; i++) {
        const struct spw_request request = {
            .bytes = MIB, .context = &contexts[i], .may_spill = true};
        struct spw_result result;

        assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
        address[i] = result.address;
    }
    address[2] = alloc(&f, MIB, &stream_a);
    spw_pool_free_context(f.pool, &contexts[0]);
    pool_check(&f);
    assert_false(spw_pool_find(f.pool, address[0], &block));
    assert_true(spw_pool_find(f.pool, address[1], &block));
    assert_true(spw_pool_find(f.pool, address[2], &block));
    pool_close(&f);
}

static uint64_t alloc_bytes_in(struct pool_fixture *f, uint64_t bytes, void *context,
                               const struct spw_stream *stream)
{
    const struct spw_request request = {
        .bytes = bytes, .context = context, .stream = stream, .may_spill = true};
    struct spw_result result;

    assert_int_equal(spw_pool_alloc(f->pool, &request, &result), SPW_OK);
    pool_check(f);
    assert_true(is_pinned(result.address));
    return result.address;
}

static uint64_t alloc_in(struct pool_fixture *f, void *context, const struct spw_stream *stream)
{
    return alloc_bytes_in(f, MIB, context, stream);
}

/* Where memory goes with its context, it holds blocks of that context only, and none once the
 * context is gone: not even of another context that has its handle. */
static void test_memory_goes_with_contexts(void **state)
{
    uint64_t first, second, ordered, free_one, again;
    const uint64_t slab = 64 * MIB;
    struct pool_fixture f;
    struct spw_block block;
    char contexts[2];

    open_slabs_as(&f, HOST * 4, /* apart */ true);
    (void)fill(&f);
    first = alloc_in(&f, &contexts[0], NULL);
    second = alloc_in(&f, &contexts[1], NULL);
    ordered = alloc_in(&f, &contexts[0], &stream_a);
    free_one = alloc_in(&f, &contexts[0], &stream_b);
    assert_int_equal(f.vm.pinned_pieces, 3); /* with the one that was tried out */
    assert_true(ordered - first < slab && second - first >= slab);
    pool_free(&f, free_one, &stream_b); /* its work is not complete */

    spw_pool_free_context(f.pool, &contexts[0]);
    f.vm.pinned_pieces--; /* by the driver */
    f.vm.pinned_bytes -= slab;
    pool_check(&f);
    assert_false(spw_pool_find(f.pool, first, &block));
    assert_true(spw_pool_find(f.pool, second, &block));
    again = alloc_in(&f, &contexts[0], &stream_b);
    assert_true(again - first >= slab && again - second >= slab);
    /* A block without a context that ends is left, and can be freed. */
    pool_free(&f, ordered, &stream_a);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), 4 * slab);
    f.vm.immediate = true;
    assert_int_equal(spw_pool_trim_host(f.pool), 2 * slab);
    assert_int_equal(f.vm.pinned_pieces, 2);
    pool_close(&f);
}

/* Memory that goes with its context is not released, and no counter changes. */
static void test_forgotten_contexts(void **state)
{
    const uint64_t slab = 64 * MIB;
    struct pool_fixture f;
    uint64_t host_bytes, pieces;
    char context;

    open_slabs_as(&f, HOST * 4, /* apart */ true);
    (void)fill(&f);
    pool_free(&f, alloc_in(&f, &context, NULL), NULL);
    fake_vm_complete(&f.vm);
    f.vm.immediate = true;
    host_bytes = spw_counter_get(&f.counters.host_bytes);
    pieces = f.vm.pinned_pieces;
    spw_pool_forget_context(f.pool, &context);
    pool_check(&f);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), host_bytes);
    assert_int_equal(f.vm.pinned_pieces, pieces);
    f.vm.pinned_pieces--; /* by the driver */
    f.vm.pinned_bytes -= slab;
    pool_close(&f);
}

/* Where memory goes with its context, the smallest free part of all slabs of the context is taken.
 */
static void test_smallest_of_a_context(void **state)
{
    /* In each slab of 32 granules, a last block of so many; the order in which they are taken. */
    static const uint64_t last[] = {4, 1, 2};
    static const size_t order[] = {1, 2, 0};
    uint64_t blocks[3];
    struct pool_fixture f;
    char context;

    open_slabs_as(&f, HOST * 4, /* apart */ true);
    (void)fill(&f);
    for (size_t i = 0; i < 3; i++) {
        for (uint64_t left = 32 - last[i]; left > 0; left -= left < 8 ? left : 8) {
            (void)alloc_bytes_in(&f, (left < 8 ? left : 8) * GRANULE, &context, NULL);
        }
        blocks[i] = alloc_bytes_in(&f, last[i] * GRANULE, &context, NULL);
    }
    assert_int_equal(f.vm.pinned_pieces, 4); /* with the one that was tried out */
    for (size_t i = 0; i < 3; i++) {
        pool_free(&f, blocks[i], NULL);
    }
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(alloc_bytes_in(&f, last[order[i]] * GRANULE, &context, NULL),
                         blocks[order[i]]);
    }
    pool_close(&f);
}

/* A pool that is shut learns that its contexts are gone, and leaves their memory to the driver. */
static void test_memory_of_a_closed_pool(void **state)
{
    struct pool_fixture f;

    open_slabs(&f, HOST);
    (void)fill(&f);
    (void)alloc(&f, MIB, &stream_a);
    pool_free(&f, alloc(&f, MIB, &stream_b), &stream_b);
    assert_true(spw_counter_get(&f.counters.host_bytes) > 0);
    spw_pool_shut(f.pool);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), 0);
    spw_pool_forget_context(f.pool, NULL);
    spw_pool_destroy(f.pool);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), 0);
    assert_int_equal(f.vm.calls[FAKE_UNPIN], 0);
    assert_int_equal(f.vm.violations, 0);
    fake_vm_fini(&f.vm);
}

/* Where the driver is gone, nothing is given back. */
static void test_memory_of_an_abandoned_pool(void **state)
{
    struct pool_fixture f;

    open_slabs(&f, HOST);
    (void)fill(&f);
    (void)alloc(&f, MIB, &stream_a);
    spw_pool_abandon(f.pool);
    assert_int_equal(f.vm.calls[FAKE_UNPIN], 0);
    assert_int_equal(f.vm.calls[FAKE_RELEASE], 0);
    fake_vm_fini(&f.vm);
}

/* Opens a pool of a few granules on the device and more on the host, with a block there. The checks
 * of invariants need a device to have one pool, and are left out. */
static void open_with_host_block(struct pool_fixture *f, struct spw_counters *counters, bool pinned)
{
    const struct spw_pool_config config = {
        .granule_bytes = GRANULE, .arena_bytes = 256 * (uint64_t)GRANULE, .limit_bytes = GRANULE};
    const struct spw_request request = {
        .bytes = 3 * GRANULE, .stream = &stream_a, .may_spill = true};
    struct spw_result result;
    bool moves;

    memset(f, 0, sizeof(*f));
    fake_vm_init(&f->vm);
    f->vm.no_host = pinned;
    assert_int_equal(spw_pool_create(&config, &f->vm.seam, counters, &f->pool), SPW_OK);
    assert_int_equal(spw_pool_open_host(f->pool, HOST * GRANULE, &moves), SPW_OK);
    assert_int_equal(spw_pool_alloc(f->pool, &request, &result), SPW_OK);
    assert_int_equal(is_pinned(result.address), pinned);
}

/* A device's old pool is destroyed while its new one, which has the same counters, is in use. */
static void old_pool_goes(bool pinned)
{
    struct spw_counters counters = {0};
    struct pool_fixture old, new;

    open_with_host_block(&old, &counters, pinned);
    open_with_host_block(&new, &counters, pinned);
    pool_close_unchecked(&old);
    pool_close(&new);
    assert_int_equal(spw_counter_get(&counters.host_used_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.host_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.live_bytes), 0);
}

static void test_old_pool_goes(void **state)
{
    old_pool_goes(/* pinned */ true);
    old_pool_goes(/* pinned */ false);
}

/* Calls that are still under way in a closed pool change nothing in the counters, which another
 * pool has now; only memory that is not the pool's is counted there. */
static void test_a_closed_pool_counts_elsewhere(void **state)
{
    struct spw_counters counters = {0}, before;
    struct pool_fixture old, new;
    struct spw_swap_chunk chunk;

    open_with_host_block(&old, &counters, /* pinned */ false);
    (void)spw_pool_charge(old.pool, GRANULE, 0, /* beyond */ true);
    spw_pool_shut(old.pool);
    spw_pool_shut(old.pool);
    assert_int_equal(spw_counter_get(&counters.live_bytes), GRANULE);
    assert_int_equal(spw_counter_get(&counters.committed_bytes), GRANULE);
    assert_int_equal(spw_counter_get(&counters.host_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.host_used_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.frees), 1);
    open_with_host_block(&new, &counters, /* pinned */ false);
    memcpy(&before, &counters, sizeof(before));
    assert_true(spw_pool_swap_find(old.pool, 0, &chunk));
    assert_int_equal(spw_pool_swap_out(old.pool, &chunk), SPW_OK);
    assert_null(spw_pool_check(old.pool));
    pool_close_unchecked(&old);
    assert_memory_equal(&before, &counters, sizeof(before));
    spw_pool_discharge(new.pool, GRANULE, 0);
    pool_close(&new);
    assert_int_equal(spw_counter_get(&counters.live_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.committed_bytes), 0);
}

/* Memory that a call gives back in a closed pool was not the pool's: it is counted as usual. */
static void test_charges_of_a_closed_pool(void **state)
{
    struct spw_counters counters = {0};
    struct pool_fixture f;

    open_with_host_block(&f, &counters, /* pinned */ false);
    (void)spw_pool_charge(f.pool, GRANULE, 0, /* beyond */ true);
    (void)spw_pool_charge_host(f.pool, GRANULE, 0, /* wished */ false);
    spw_pool_shut(f.pool);
    assert_int_equal(spw_counter_get(&counters.vmm_bytes), GRANULE);
    assert_int_equal(spw_counter_get(&counters.host_used_bytes), GRANULE);
    spw_pool_discharge(f.pool, GRANULE, 0);
    spw_pool_discharge_host(f.pool, GRANULE, 0);
    assert_int_equal(spw_counter_get(&counters.vmm_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.live_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.host_bytes), 0);
    pool_close_unchecked(&f);
}

static void test_neither(void **state)
{
    struct pool_fixture f;
    bool moves;

    pool_open_small(&f, 256, DEVICE, 0);
    f.vm.no_host = true;
    f.vm.no_pinned = true;
    assert_int_equal(spw_pool_open_host(f.pool, HOST * GRANULE, &moves), SPW_E_UNSUPPORTED);
    assert_false(spw_pool_uses_pinned(f.pool));
    pool_refuse(&f, (DEVICE + 1) * GRANULE, &stream_a, SPW_E_LIMIT);
    pool_close(&f);
}

enum { BLOCKS = 40, ROUNDS = 4000 };

struct one {
    uint64_t address, bytes;
    const struct spw_stream *stream;
};

/* Blocks of all sizes on several streams, with work that completes now and then: none overlap,
 * whatever fails. True when the fault was reached. */
static bool run(unsigned seed, int fail_call, size_t fail_after)
{
    static const struct spw_stream *const streams[] = {&stream_a, &stream_b, &stream_c, NULL};
    struct one blocks[BLOCKS] = {{0}};
    struct pool_fixture f;
    bool reached;

    srandom(seed);
    open_slabs(&f, HOST);
    (void)fill(&f);
    f.vm.seed = seed;
    f.vm.fail_call = fail_call;
    f.vm.fail_after = fail_after;
    for (int round = 0; round < (fail_call >= 0 ? ROUNDS / 10 : ROUNDS); round++) {
        struct one *one = &blocks[random() % BLOCKS];

        if (one->bytes != 0) {
            pool_free(&f, one->address, random() % 4 == 0 ? NULL : one->stream);
            one->bytes = 0;
            continue;
        }
        one->stream = streams[random() % 4];
        one->bytes = 1 + (uint64_t)random() % (random() % 8 == 0 ? 40 * MIB : 300000);
        if (try(&f, one->bytes, one->stream, &one->address) != SPW_OK) {
            one->bytes = 0;
            continue;
        }
        for (int i = 0; i < BLOCKS; i++) {
            assert_true(&blocks[i] == one || blocks[i].bytes == 0 ||
                        blocks[i].address + blocks[i].bytes <= one->address ||
                        one->address + one->bytes <= blocks[i].address);
        }
        assert_true(f.vm.pinned_bytes <= HOST * GRANULE);
        if (random() % 64 == 0) {
            (void)spw_pool_trim_host(f.pool);
            pool_check(&f);
        }
    }
    reached = fail_call >= 0 && f.vm.calls[fail_call] > fail_after;
    f.vm.fail_call = -1;
    pool_close(&f);
    return reached;
}

static void test_random(void **state)
{
    for (unsigned seed = 1; seed <= 10; seed++) {
        (void)run(seed, -1, 0);
    }
}

static void test_faults(void **state)
{
    static const enum fake_call calls[] = {FAKE_PIN, FAKE_UNPIN, FAKE_FENCE};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        size_t after = 0;

        while (after < 40 && run(3, (int)calls[i], after)) {
            after++;
        }
        assert_true(after > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_first),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_forgotten_contexts),
        cmocka_unit_test(test_sizes_of_slabs),
        cmocka_unit_test(test_smallest_that_fits),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_slabs_make_room),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_contexts_go),
        cmocka_unit_test(test_old_pool_goes),
        cmocka_unit_test(test_a_closed_pool_counts_elsewhere),
        cmocka_unit_test(test_charges_of_a_closed_pool),
        cmocka_unit_test(test_memory_goes_with_contexts),
        cmocka_unit_test(test_memory_of_a_closed_pool),
        cmocka_unit_test(test_memory_of_an_abandoned_pool),
        cmocka_unit_test(test_neither),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_smallest_of_a_context),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
