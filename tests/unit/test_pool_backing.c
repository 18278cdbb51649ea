/* Backing: growth, stealing, limits, a full device, trimming and charges. */
#include "pool_fixture.h"

enum { ROOMY = 1 << 20 /* granules: no limit in these tests */ };

static uint64_t committed_granules(const struct pool_fixture *f)
{
    return spw_counter_get(&f->counters.committed_bytes) / GRANULE;
}

/* ---- growth ---- */

static void test_commits_only_what_is_covered(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 0);
    assert_int_equal(committed_granules(&f), 0);
    (void)pool_alloc(&f, 3 * GRANULE, &stream_a);
    assert_int_equal(committed_granules(&f), 3);
    (void)pool_alloc(&f, GRANULE / 2, &stream_a);
    assert_int_equal(committed_granules(&f), 4);
    (void)pool_alloc(&f, GRANULE / 2, &stream_a);
    assert_int_equal(committed_granules(&f), 4);
    (void)pool_alloc(&f, 100, &stream_a); /* small blocks live apart */
    assert_int_equal(committed_granules(&f), 5);
    (void)pool_alloc(&f, 4096, &stream_a);
    assert_int_equal(committed_granules(&f), 5);
    pool_close(&f);
}

/* Three free granules, a live one, then more free ones: no four in a row. */
static void fragment(struct pool_fixture *f, const struct spw_stream *stream)
{
    uint64_t first = pool_alloc(f, 3 * GRANULE, stream);

    (void)pool_alloc(f, GRANULE, stream);
    pool_free(f, first, stream);
}

static void test_grows_within_the_allowance(void **state)
{
    struct pool_fixture f;

    pool_open_small(&f, ROOMY, ROOMY, 100); /* at least 16 granules */
    f.vm.immediate = true;
    fragment(&f, &stream_a);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(spw_counter_get(&f.counters.steals), 0);
    assert_int_equal(committed_granules(&f), 8);
    pool_close(&f);
}

static void test_steals_beyond_the_allowance(void **state)
{
    struct pool_fixture f;

    pool_open_small(&f, ROOMY, ROOMY, 0);
    f.vm.immediate = true;
    fragment(&f, &stream_a);
    pool_memory_calls(&f);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    /* The window reaches from behind the live block: all four are new, three are stolen. */
    assert_int_equal(spw_counter_get(&f.counters.steals), 3);
    assert_int_equal(spw_counter_get(&f.counters.steal_batches), 1);
    assert_int_equal(committed_granules(&f), 5);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 1);
    assert_int_equal(f.vm.calls[FAKE_UNMAP], 1);
    assert_int_equal(f.vm.calls[FAKE_ACCESS], 1);
    assert_int_equal(f.vm.calls[FAKE_RELEASE], 0);
    pool_close(&f);
}

/* Leaves `count` times three free granules, each behind a live one: no four in a row. */
static void fragment_widely(struct pool_fixture *f, size_t count)
{
    uint64_t blocks[64];

    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = pool_alloc(f, 3 * GRANULE, &stream_a);
        (void)pool_alloc(f, GRANULE, &stream_a);
    }
    for (size_t i = 0; i < count; i++) {
        pool_free(f, blocks[i], &stream_a);
    }
}

/* Takes and frees blocks of one size after the other, which leaves free memory of all sizes in
 * places. Returns how many granules were committed at most. */
static uint64_t use_many_sizes(struct pool_fixture *f)
{
    uint64_t blocks[20], most = 0;

    for (uint64_t size = 5; size < 13; size++) {
        for (int i = 0; i < 20; i++) {
            blocks[i] = pool_alloc(f, size * GRANULE, &stream_a);
            (void)pool_alloc(f, 100 * 1024, &stream_a);
            most = committed_granules(f) > most ? committed_granules(f) : most;
        }
        for (int i = 0; i < 20; i++) {
            pool_free(f, blocks[i], &stream_a);
        }
    }
    return most;
}

/* A fifth of the allowance is there at once; stealing makes more of it usable. */
static void test_stealing_opens_the_allowance(void **state)
{
    struct pool_fixture f;
    uint64_t before, most, peak;

    pool_open_small(&f, ROOMY, ROOMY, 100);
    f.vm.immediate = true;
    (void)pool_alloc(&f, 840 * GRANULE, &stream_a);
    fragment_widely(&f, 64); /* 1096 granules at the peak: an allowance of 109, at first of 21 */
    before = committed_granules(&f);
    for (int i = 0; i < 5; i++) {
        (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    }
    assert_int_equal(spw_counter_get(&f.counters.steals), 0);
    assert_int_equal(committed_granules(&f), before + 20);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_true(spw_counter_get(&f.counters.steals) > 0);
    most = use_many_sizes(&f);
    peak = spw_counter_get(&f.counters.live_peak_bytes) / GRANULE;
    assert_true(most > peak + peak / 50 + 10);
    pool_close(&f);
}

static void test_stealing_opens_no_more_than_the_allowance(void **state)
{
    struct pool_fixture f;
    uint64_t most, peak;

    pool_open_small(&f, ROOMY, ROOMY, 25);
    f.vm.immediate = true;
    (void)pool_alloc(&f, 840 * GRANULE, &stream_a);
    fragment_widely(&f, 64);
    most = use_many_sizes(&f);
    peak = spw_counter_get(&f.counters.live_peak_bytes) / GRANULE;
    assert_true(most <= peak + peak / 40 + 1);
    pool_close(&f);
}

static void test_never_steals_pending_granules(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open_small(&f, ROOMY, ROOMY, 0);
    fragment(&f, &stream_a);
    pool_memory_calls(&f);
    address = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(f.vm.calls[FAKE_UNMAP], 0);
    assert_int_equal(committed_granules(&f), 8);
    pool_free(&f, address, &stream_a);
    f.vm.immediate = true;
    (void)pool_alloc(&f, 5 * GRANULE, &stream_b);
    assert_int_equal(spw_counter_get(&f.counters.steals), 1);
    assert_int_equal(committed_granules(&f), 8);
    pool_close(&f);
}

/* A granule in which two streams freed is pending until both are done. */
static void test_granule_of_two_streams(void **state)
{
    struct pool_fixture f;
    uint64_t low, high;

    pool_open_small(&f, 64, 2, 0);
    low = pool_alloc(&f, GRANULE / 2, &stream_a);
    high = pool_alloc(&f, GRANULE / 2, &stream_b);
    pool_free(&f, low, &stream_a);
    pool_free(&f, high, &stream_b);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0);
    fake_vm_complete_stream(&f.vm, stream_a.id);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0);
    pool_check(&f);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_trim(f.pool, 0), GRANULE);
    pool_close(&f);
}

/* The later of the two frees completes, its stream is gone, and everything is one extent again. */
static void test_granule_of_two_streams_joined(void **state)
{
    struct pool_fixture f;
    uint64_t low, high, next;

    pool_open_small(&f, 64, 64, 0);
    low = pool_alloc(&f, GRANULE / 2, &stream_b);
    high = pool_alloc(&f, GRANULE / 2, &stream_a);
    next = pool_alloc(&f, GRANULE, &stream_b);
    assert_int_equal(next, low + GRANULE);
    pool_free(&f, low, &stream_b);
    pool_free(&f, high, &stream_a);
    spw_pool_retire_stream(f.pool, &stream_a);
    fake_vm_complete_stream(&f.vm, stream_a.id);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0); /* finds out that A is done */
    pool_free(&f, next, &stream_b);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0);
    assert_int_equal(pool_alloc(&f, 2 * GRANULE, &stream_b), low);
    pool_close(&f);
}

/* There is one stream, so the rest of a stolen extent merges with the idle one below: the walk must
 * go on with both as one. */
static void test_steals_from_joined_extents(void **state)
{
    struct pool_fixture f;
    uint64_t low, half, high;

    pool_open_small(&f, 64, 64, 0);
    low = pool_alloc(&f, 3 * GRANULE + GRANULE / 2, &stream_a);
    half = pool_alloc(&f, GRANULE / 2, &stream_a);
    high = pool_alloc(&f, 3 * GRANULE, &stream_a);
    pool_free(&f, low, NULL);
    pool_free(&f, high, &stream_a);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0); /* records the fences of both */
    pool_free(&f, half, &stream_a);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_trim(f.pool, 0), 6 * GRANULE);
    pool_check(&f);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_trim(f.pool, 0), GRANULE);
    pool_close(&f);
}

/* A steal takes the largest extents until one has all missing chunks, then the smallest such. */
static void test_steals_from_few_extents(void **state)
{
    struct pool_fixture f;
    uint64_t five, two, three;

    pool_open_small(&f, 64, 64, 0);
    five = pool_alloc(&f, 5 * GRANULE, &stream_a);
    pool_alloc(&f, GRANULE, &stream_a);
    two = pool_alloc(&f, 2 * GRANULE, &stream_a);
    pool_alloc(&f, GRANULE, &stream_a);
    three = pool_alloc(&f, 3 * GRANULE, &stream_a);
    pool_alloc(&f, GRANULE, &stream_a);
    pool_free(&f, five, &stream_a);
    pool_free(&f, three, &stream_a);
    pool_free(&f, two, &stream_a);
    f.vm.immediate = true;
    pool_alloc(&f, 7 * GRANULE, &stream_a);
    assert_int_equal(f.vm.calls[FAKE_UNMAP], 2);
    pool_memory_calls(&f);
    assert_int_equal(pool_alloc(&f, 3 * GRANULE, &stream_a), three);
    assert_int_equal(pool_memory_calls(&f), 0);
    pool_close(&f);
}

/* ---- limits ---- */

static void test_limit_is_exact(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open_small(&f, 64, 4, 100);
    pool_refuse(&f, 4 * GRANULE + 1, &stream_a, SPW_E_LIMIT);
    pool_refuse(&f, 5 * GRANULE, NULL, SPW_E_LIMIT);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 0); /* that was clear before any steal */
    address = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(committed_granules(&f), 4);
    pool_refuse(&f, 1, &stream_a, SPW_E_LIMIT);
    pool_free(&f, address, &stream_a);
    (void)pool_alloc(&f, 4 * GRANULE - 512, &stream_a);
    pool_refuse(&f, 512, &stream_a, SPW_E_LIMIT); /* small ones need a granule of their own */
    pool_close(&f);
}

/* Memory that is pinned by small blocks: the limit refuses after trying everything. */
static void test_limit_with_pinned_granules(void **state)
{
    struct pool_fixture f;
    uint64_t most[4], rest[4];

    pool_open_small(&f, 64, 4, 100);
    for (int i = 0; i < 4; i++) {
        most[i] = pool_alloc(&f, GRANULE - 8192, &stream_a);
        rest[i] = pool_alloc(&f, 8192, &stream_a);
    }
    for (int i = 0; i < 4; i++) {
        pool_free(&f, most[i], &stream_a);
    }
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_LIMIT);
    pool_refuse(&f, GRANULE - 8192 + 1, &stream_b, SPW_E_LIMIT);
    assert_int_equal(f.vm.chunks, 4);
    assert_int_equal(pool_alloc(&f, GRANULE - 8192, &stream_b), most[0]);
    pool_free(&f, rest[3], &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    pool_close(&f);
}

static void test_lowered_limit(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open_small(&f, 64, 16, 100);
    address = pool_alloc(&f, 8 * GRANULE, &stream_a);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    spw_pool_set_limit(f.pool, 6 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.limit_bytes), 6 * GRANULE);
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_LIMIT);
    pool_free(&f, address, &stream_a);
    (void)pool_alloc(&f, 2 * GRANULE, &stream_a); /* committed memory may be used */
    assert_int_equal(f.vm.calls[FAKE_CREATE], 12);
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_LIMIT);
    pool_close(&f);
}

static void test_full_device(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open_small(&f, 64, 64, 1000);
    f.vm.most_chunks = 6;
    f.vm.immediate = true;
    pool_refuse(&f, 7 * GRANULE, &stream_a, SPW_E_NO_MEMORY);
    address = pool_alloc(&f, 3 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    pool_free(&f, address, &stream_a);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a); /* two are left, two are stolen */
    assert_int_equal(spw_counter_get(&f.counters.steals), 2);
    assert_int_equal(f.vm.chunks, 6);
    f.vm.most_chunks = 8; /* another thread freed some */
    (void)pool_alloc(&f, 3 * GRANULE, &stream_a);
    pool_close(&f);
}

/* ---- waiting ---- */

static void test_waits_only_when_needed(void **state)
{
    struct pool_fixture f;

    pool_open_small(&f, 64, 8, 0);
    fragment(&f, &stream_a);
    (void)pool_alloc(&f, 4 * GRANULE, NULL); /* up to the limit without waiting */
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 0);
    (void)pool_alloc(&f, 3 * GRANULE, NULL);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 1);
    pool_refuse(&f, GRANULE, NULL, SPW_E_LIMIT);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 1);
    pool_close(&f);
}

static void test_waits_for_several_fences(void **state)
{
    struct pool_fixture f;
    uint64_t on_a, on_b, between;

    pool_open_small(&f, 64, 9, 0);
    on_a = pool_alloc(&f, 4 * GRANULE, &stream_a);
    between = pool_alloc(&f, GRANULE, &stream_c);
    on_b = pool_alloc(&f, 4 * GRANULE, &stream_b);
    pool_free(&f, on_a, &stream_a);
    pool_free(&f, on_b, &stream_b);
    (void)pool_alloc(&f, 8 * GRANULE, &stream_c);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 2);
    pool_free(&f, between, &stream_c);
    pool_close(&f);
}

/* A loop of cuMemAlloc and cuMemFree waits rather than grows, as a bare driver does. */
static void test_unordered_loop_does_not_grow(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 0);
    for (int i = 0; i < 10; i++) {
        pool_free(&f, pool_alloc(&f, 4 * GRANULE, NULL), NULL);
    }
    assert_int_equal(committed_granules(&f), 4);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 9);
    pool_close(&f);
}

/* In a capture nothing may be waited for: the pool grows instead, and refuses only at the limit. */
static void test_refused_waits_are_abandoned(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open_small(&f, 64, 12, 0);
    address = pool_alloc(&f, 4 * GRANULE, NULL);
    pool_free(&f, address, NULL);
    (void)pool_alloc(&f, 4 * GRANULE + 1, &stream_a); /* records the fence of the free */
    assert_true(f.vm.live_fences > 0);
    f.vm.capturing = true;
    (void)pool_alloc(&f, 3 * GRANULE, NULL);
    pool_refuse(&f, GRANULE, NULL, SPW_E_LIMIT);
    assert_true(f.vm.live_fences > 0); /* memory that was not waited for is kept */
    f.vm.capturing = false;
    pool_close(&f);
}

static void test_wait_is_refused_by_the_seam(void **state)
{
    struct pool_fixture f;

    pool_open_small(&f, 64, 4, 0);
    pool_free(&f, pool_alloc(&f, 4 * GRANULE, NULL), NULL);
    f.vm.fail_call = FAKE_WAIT_HOST;
    pool_refuse(&f, 4 * GRANULE, NULL, SPW_E_LIMIT);
    assert_int_equal(f.vm.live_fences, 1);
    (void)pool_alloc(&f, 4 * GRANULE, NULL);
    pool_close(&f);
}

/* ---- trimming and charges ---- */

static void test_trim(void **state)
{
    struct pool_fixture f;
    uint64_t low, high;

    pool_open(&f, 100);
    low = pool_alloc(&f, 8 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    high = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0);
    pool_free(&f, low, &stream_a);
    pool_free(&f, high, &stream_a);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0); /* pending */
    pool_check(&f);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_trim(f.pool, 20 * GRANULE), 0);
    assert_int_equal(spw_pool_trim(f.pool, 10 * GRANULE + 5), 2 * GRANULE); /* keeps at least */
    assert_int_equal(f.vm.chunks, 11);
    pool_check(&f);
    assert_int_equal(spw_pool_trim(f.pool, 0), 10 * GRANULE);
    assert_int_equal(f.vm.chunks, 1); /* under a block */
    (void)pool_alloc(&f, 8 * GRANULE, &stream_a);
    pool_close(&f);
}

static void test_trim_of_everything(void **state)
{
    struct pool_fixture f;
    uint64_t blocks[100];

    pool_open(&f, 100);
    for (int i = 0; i < 100; i++) {
        blocks[i] = pool_alloc(&f, (uint64_t)(i * i * 997 + 1), i % 3 != 0 ? &stream_a : NULL);
    }
    for (int i = 0; i < 100; i++) {
        pool_free(&f, blocks[i], i % 2 != 0 ? &stream_b : NULL);
    }
    fake_vm_complete(&f.vm);
    f.vm.immediate = true;
    assert_int_equal(spw_pool_trim(f.pool, 0), spw_counter_get(&f.counters.committed_peak_bytes));
    assert_int_equal(f.vm.chunks, 0);
    assert_int_equal(committed_granules(&f), 0);
    pool_close(&f);
}

static void test_charges(void **state)
{
    struct pool_fixture f;
    struct spw_pool_usage usage;
    uint64_t address;

    pool_open_small(&f, 64, 10, 100);
    address = pool_alloc(&f, 6 * GRANULE, &stream_a);
    assert_int_equal(spw_pool_charge(f.pool, 4 * GRANULE, /* site */ 0, false), SPW_OK);
    pool_check(&f);
    spw_pool_usage(f.pool, &usage);
    assert_int_equal(usage.live, 10 * GRANULE);
    assert_int_equal(usage.committed, 10 * GRANULE);
    assert_int_equal(usage.spare, 0);
    assert_int_equal(spw_counter_get(&f.counters.vmm_bytes), 4 * GRANULE);
    assert_int_equal(spw_pool_charge(f.pool, 1, /* site */ 0, false), SPW_E_LIMIT);
    assert_int_equal(spw_pool_charge(f.pool, UINT64_MAX - GRANULE, /* site */ 0, false),
                     SPW_E_LIMIT);
    pool_refuse(&f, 1, &stream_a, SPW_E_LIMIT);
    spw_pool_discharge(f.pool, 4 * GRANULE, /* site */ 0);
    pool_check(&f);
    assert_int_equal(spw_counter_get(&f.counters.vmm_bytes), 0);
    assert_int_equal(spw_pool_charge(f.pool, 6 * GRANULE, /* site */ 0, /* beyond */ true), SPW_OK);
    pool_check(&f);
    assert_int_equal(spw_counter_get(&f.counters.committed_bytes), 12 * GRANULE);
    assert_int_equal(spw_pool_room(f.pool), -2 * (int64_t)GRANULE);
    pool_refuse(&f, 1, &stream_a, SPW_E_LIMIT);
    spw_pool_discharge(f.pool, 6 * GRANULE, /* site */ 0);
    pool_check(&f);
    pool_free(&f, address, &stream_a);
    pool_close(&f);
}

static void test_charge_makes_room(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open_small(&f, 64, 10, 100);
    address = pool_alloc(&f, 8 * GRANULE, &stream_a);
    pool_free(&f, address, &stream_a);
    assert_int_equal(spw_pool_charge(f.pool, 6 * GRANULE, /* site */ 0, false),
                     SPW_E_LIMIT); /* pending */
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_charge(f.pool, 6 * GRANULE, /* site */ 0, false), SPW_OK);
    pool_check(&f);
    assert_int_equal(f.vm.chunks, 4); /* no more than needed */
    spw_pool_discharge(f.pool, 6 * GRANULE, /* site */ 0);
    pool_close(&f);
}

static void test_refresh_access(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 100);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    (void)pool_alloc(&f, 100, &stream_a);
    assert_int_equal(spw_pool_refresh_access(f.pool), SPW_OK);
    assert_int_equal(f.vm.shared, 5);
    assert_int_equal(f.vm.violations, 0);
    f.vm.fail_call = FAKE_ACCESS;
    f.vm.fail_after = 0;
    assert_true(spw_pool_refresh_access(f.pool) < SPW_E_DRIVER);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commits_only_what_is_covered),
        cmocka_unit_test(test_grows_within_the_allowance),
        cmocka_unit_test(test_steals_beyond_the_allowance),
        cmocka_unit_test(test_stealing_opens_the_allowance),
        cmocka_unit_test(test_stealing_opens_no_more_than_the_allowance),
        cmocka_unit_test(test_never_steals_pending_granules),
        cmocka_unit_test(test_granule_of_two_streams),
        cmocka_unit_test(test_granule_of_two_streams_joined),
        cmocka_unit_test(test_steals_from_joined_extents),
        cmocka_unit_test(test_steals_from_few_extents),
        cmocka_unit_test(test_limit_is_exact),
        cmocka_unit_test(test_limit_with_pinned_granules),
        cmocka_unit_test(test_lowered_limit),
        cmocka_unit_test(test_full_device),
        cmocka_unit_test(test_waits_only_when_needed),
        cmocka_unit_test(test_waits_for_several_fences),
        cmocka_unit_test(test_unordered_loop_does_not_grow),
        cmocka_unit_test(test_refused_waits_are_abandoned),
        cmocka_unit_test(test_wait_is_refused_by_the_seam),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_trim_of_everything),
        cmocka_unit_test(test_charges),
        cmocka_unit_test(test_charge_makes_room),
        cmocka_unit_test(test_refresh_access),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
