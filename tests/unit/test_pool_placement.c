/* Placements: on the host, partly on the host, in a numbered heap, and lazy blocks; and the figures
 * of accounts, whatever fails. */
#include "pool_fixture.h"

#include <string.h>

#include "common/host_share.h"
#include "pool/pool.h"

enum { DEVICE = 12, HOST = 16, SLOTS = 24, ACCOUNTS = 4, STEPS = 400 };

/* A pool with everything that placements may use. */
struct placed_pool {
    struct pool_fixture f;
    struct spw_account accounts[SPW_ACCOUNTS];
    _Atomic uint64_t to_commit;
};

static void begin(struct placed_pool *w)
{
    memset(w, 0, sizeof(*w));
    pool_open_as(&w->f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                                  .arena_bytes = 1024ull * GRANULE,
                                                  .limit_bytes = (uint64_t)DEVICE * GRANULE,
                                                  .growth_permille = 50,
                                                  .host_heap = true,
                                                  .numbered_heaps = 2,
                                                  .to_commit = &w->to_commit,
                                                  .accounts = w->accounts});
    spw_pool_set_host_limit(w->f.pool, (uint64_t)HOST * GRANULE);
}

static enum spw_err try_placed(struct placed_pool *w, uint64_t bytes,
                               const struct spw_stream *stream,
                               const struct spw_pool_placement *placement, bool may_spill,
                               uint64_t *ret_address)
{
    const struct spw_request request = {
        .bytes = bytes, .stream = stream, .placement = placement, .may_spill = may_spill};
    struct spw_result result = {.address = *ret_address};
    enum spw_err err = spw_pool_alloc(w->f.pool, &request, &result);

    *ret_address = result.address;
    pool_check(&w->f);
    return err;
}

static uint64_t alloc_placed(struct placed_pool *w, uint64_t bytes,
                             const struct spw_pool_placement *placement)
{
    uint64_t address = 0;

    assert_int_equal(try_placed(w, bytes, &stream_a, placement, false, &address), SPW_OK);
    return address;
}

static uint64_t of(const _Atomic uint64_t *value)
{
    return spw_counter_get(value);
}

static void test_on_host(void **state)
{
    const struct spw_pool_placement placement = {
        .limit_bytes = UINT64_MAX, .account = 1, .on_host = true};
    struct placed_pool w;
    uint64_t first, second;

    begin(&w);
    (void)pool_alloc(&w.f, 3 * MIB, &stream_a);
    first = alloc_placed(&w, 3 * MIB, &placement);
    second = alloc_placed(&w, 512, &placement);
    assert_int_equal(fake_vm_on_host(&w.f.vm, first, 3 * MIB), 2);
    assert_int_equal(fake_vm_on_host(&w.f.vm, second, 512), 1);
    assert_int_equal(of(&w.f.counters.host_used_bytes), 4 * MIB);
    assert_int_equal(of(&w.f.counters.committed_bytes), 4 * MIB);
    assert_int_equal(of(&w.accounts[0].host), 3 * MIB + 512);
    /* Freed memory serves the next such block without a call, but no other block. */
    pool_free(&w.f, first, &stream_a);
    (void)pool_memory_calls(&w.f);
    assert_int_equal(alloc_placed(&w, 3 * MIB, &placement), first);
    assert_int_equal(pool_memory_calls(&w.f), 0);
    pool_free(&w.f, first, &stream_a);
    (void)pool_alloc(&w.f, (DEVICE - 2) * GRANULE, &stream_a);
    assert_int_equal(of(&w.f.counters.committed_bytes), DEVICE * GRANULE);
    w.f.vm.immediate = true;
    fake_vm_complete(&w.f.vm);
    assert_true(spw_pool_trim_host(w.f.pool) > 0);
    assert_int_equal(of(&w.accounts[0].live), 512);
    pool_close(&w.f);
    assert_int_equal(of(&w.accounts[0].live), 0);
}

static void test_host_is_full(void **state)
{
    const struct spw_pool_placement placement = {
        .limit_bytes = UINT64_MAX, .account = 1, .on_host = true};
    struct placed_pool w;
    uint64_t address = 4711, first;

    begin(&w);
    first = alloc_placed(&w, (HOST - 1) * GRANULE, &placement);
    assert_int_equal(try_placed(&w, 2 * GRANULE, &stream_a, &placement, false, &address),
                     SPW_E_NO_MEMORY);
    assert_int_equal(address, 4711);
    pool_free(&w.f, first, &stream_b);
    w.f.vm.immediate = true;
    fake_vm_complete(&w.f.vm);
    (void)alloc_placed(&w, HOST * GRANULE, &placement);
    pool_close(&w.f);
}

static void test_share(void **state)
{
    struct spw_pool_placement placement = {
        .limit_bytes = UINT64_MAX, .account = 1, .host_permille = 750};
    struct placed_pool w;
    uint64_t address;

    begin(&w);
    address = alloc_placed(&w, 8 * GRANULE, &placement);
    assert_int_equal(address % GRANULE, 0);
    assert_int_equal(fake_vm_on_host(&w.f.vm, address, 8 * GRANULE), 6);
    /* Spread evenly: never four in a row. */
    for (uint64_t at = address; at + 4 * GRANULE <= address + 8 * GRANULE; at += GRANULE) {
        assert_true(fake_vm_on_host(&w.f.vm, at, 4 * GRANULE) == 3);
    }
    placement.host_permille = 1000;
    address = alloc_placed(&w, 3 * MIB, &placement);
    assert_int_equal(fake_vm_on_host(&w.f.vm, address, 3 * MIB), 2);
    placement.host_permille = 300;
    address = alloc_placed(&w, 1 * MIB, &placement);
    assert_int_equal(fake_vm_on_host(&w.f.vm, address, 1 * MIB), 0);
    pool_close(&w.f);
}

/* A block that is partly on the host takes the memory of an equal one that was freed: only what is
 * on the host is mapped anew. */
static void test_share_is_mapped_again(void **state)
{
    const struct spw_pool_placement placement = {
        .limit_bytes = UINT64_MAX, .account = 1, .host_permille = 500};
    struct placed_pool w;
    uint64_t first;

    begin(&w);
    w.f.vm.immediate = true;
    first = alloc_placed(&w, 8 * GRANULE, &placement);
    pool_free(&w.f, first, &stream_a);
    memset(w.f.vm.calls, 0, sizeof(w.f.vm.calls));
    assert_int_equal(alloc_placed(&w, 8 * GRANULE, &placement), first);
    assert_int_equal(fake_vm_on_host(&w.f.vm, first, 8 * GRANULE), 4);
    assert_int_equal(w.f.vm.calls[FAKE_MAP], 4);
    assert_int_equal(w.f.vm.calls[FAKE_UNMAP], 4);
    pool_close(&w.f);
}

/* Memory that is wholly on the device gives up granules for the part on the host, evenly. */
static void test_share_makes_holes(void **state)
{
    const struct spw_pool_placement placement = {
        .limit_bytes = UINT64_MAX, .account = 1, .host_permille = 500};
    struct placed_pool w;
    uint64_t plain, address;

    begin(&w);
    w.f.vm.immediate = true;
    plain = pool_alloc(&w.f, 8 * GRANULE, &stream_a);
    pool_free(&w.f, plain, &stream_a);
    address = alloc_placed(&w, 8 * GRANULE - 512, &placement);
    assert_int_equal(address, plain);
    assert_int_equal(fake_vm_on_host(&w.f.vm, address, 8 * GRANULE), 4);
    assert_int_equal(fake_vm_on_host(&w.f.vm, address + 7 * GRANULE, GRANULE), 1);
    for (size_t i = 0; i < 4; i++) {
        assert_true(fake_vm_on_host(&w.f.vm, address + 2 * i * GRANULE, 2 * GRANULE) == 1);
    }
    pool_close(&w.f);
}

/* Work may still use freed memory, so nothing is unmapped there. */
static void test_share_spares_pending_memory(void **state)
{
    const struct spw_pool_placement placement = {
        .limit_bytes = UINT64_MAX, .account = 1, .host_permille = 500};
    struct placed_pool w;
    uint64_t plain, address;

    begin(&w);
    plain = pool_alloc(&w.f, 4 * GRANULE, &stream_a);
    pool_free(&w.f, plain, &stream_a);
    memset(w.f.vm.calls, 0, sizeof(w.f.vm.calls));
    address = alloc_placed(&w, 4 * GRANULE, &placement);
    assert_true(address != plain);
    assert_int_equal(fake_vm_on_host(&w.f.vm, address, 4 * GRANULE), 2);
    assert_int_equal(w.f.vm.calls[FAKE_UNMAP], 0);
    pool_close(&w.f);
}

/* The result says how much of a block is on the host, as the command predicts it. */
static void test_bytes_of_a_share(void **state)
{
    static const uint64_t sizes[] = {512,         MIB,         3 * MIB,          4 * GRANULE,
                                     5 * MIB + 1, 8 * GRANULE, 8 * GRANULE - 512};
    struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .account = 1};
    const struct spw_request request = {.stream = &stream_a, .placement = &placement};
    struct placed_pool w;

    begin(&w);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        for (placement.host_permille = 0; placement.host_permille <= 1000;
             placement.host_permille += 50) {
            uint64_t bytes = (sizes[i] + 511) / 512 * 512;
            struct spw_request one = request;
            struct spw_result result;

            one.bytes = sizes[i];
            assert_int_equal(spw_pool_alloc(w.f.pool, &one, &result), SPW_OK);
            assert_int_equal(result.host_bytes,
                             spw_host_share_bytes(bytes, placement.host_permille, GRANULE));
            pool_free(&w.f, result.address, &stream_a);
        }
    }
    pool_close(&w.f);
}

/* A numbered heap reuses its own memory and no other; a number that the pool does not have means no
 * heap of its own. */
static void test_numbered_heaps(void **state)
{
    struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .account = 1};
    uint64_t blocks[3];
    struct placed_pool w;

    begin(&w);
    for (placement.heap = 0; placement.heap < 3; placement.heap++) {
        blocks[placement.heap] = alloc_placed(&w, 3 * GRANULE, &placement);
        pool_free(&w.f, blocks[placement.heap], &stream_a);
    }
    assert_true(blocks[0] != blocks[1] && blocks[1] != blocks[2] && blocks[0] != blocks[2]);
    (void)pool_memory_calls(&w.f);
    for (placement.heap = 0; placement.heap < 5; placement.heap++) {
        unsigned known = placement.heap < 3 ? placement.heap : 0;

        assert_int_equal(alloc_placed(&w, 3 * GRANULE, &placement), blocks[known]);
        pool_free(&w.f, blocks[known], &stream_a);
    }
    assert_int_equal(pool_memory_calls(&w.f), 0);
    pool_close(&w.f);
}

static void test_limit(void **state)
{
    struct spw_pool_placement placement = {.limit_bytes = 4 * MIB, .account = 2};
    struct placed_pool w;
    uint64_t address = 4711;

    begin(&w);
    (void)alloc_placed(&w, 3 * MIB, &placement);
    assert_int_equal(try_placed(&w, 1 * MIB + 1, &stream_a, &placement, false, &address),
                     SPW_E_QUOTA);
    assert_int_equal(address, 4711);
    placement.on_host = true;
    (void)alloc_placed(&w, 8 * MIB, &placement);
    placement.on_host = false;
    address = alloc_placed(&w, 1 * MIB, &placement);
    assert_int_equal(of(&w.accounts[1].live) - of(&w.accounts[1].host), 4 * MIB);
    pool_free(&w.f, address, NULL);
    (void)alloc_placed(&w, 512 * 1024, &placement);
    pool_close(&w.f);
}

static void test_lazy(void **state)
{
    const struct spw_pool_placement placement = {
        .limit_bytes = UINT64_MAX, .account = 1, .lazy = true};
    struct spw_pool_usage usage;
    struct placed_pool w;
    uint64_t first, second;

    begin(&w);
    first = alloc_placed(&w, 11 * GRANULE, &placement);
    second = alloc_placed(&w, 5 * MIB + 512, &placement);
    assert_int_equal(of(&w.to_commit), 2);
    assert_int_equal(of(&w.f.counters.committed_bytes), 0);
    assert_int_equal(of(&w.f.counters.live_bytes), 11 * GRANULE + 5 * MIB + 512);
    spw_pool_usage(w.f.pool, &usage);
    assert_int_equal(usage.spare, 0);
    assert_int_equal(usage.lazy, usage.live);
    /* Together they do not fit on the device. */
    assert_int_equal(spw_pool_commit(w.f.pool, false), SPW_E_LIMIT);
    pool_check(&w.f);
    pool_free(&w.f, first, &stream_a);
    assert_int_equal(spw_pool_commit(w.f.pool, false), SPW_OK);
    pool_check(&w.f);
    assert_int_equal(of(&w.to_commit), 0);
    assert_true(fake_vm_usable(&w.f.vm, second, 5 * MIB + 512));
    /* The rest of its last granule serves other blocks. */
    (void)pool_memory_calls(&w.f);
    (void)pool_alloc(&w.f, 512 * 1024, &stream_a);
    assert_int_equal(pool_memory_calls(&w.f), 0);
    first = alloc_placed(&w, 11 * GRANULE, &placement);
    assert_int_equal(spw_pool_commit(w.f.pool, true), SPW_OK);
    assert_int_equal(fake_vm_on_host(&w.f.vm, first, 11 * GRANULE), 2);
    (void)alloc_placed(&w, 2 * GRANULE, &placement);
    pool_close(&w.f);
    assert_int_equal(of(&w.to_commit), 0);
}

/* An uncounted lazy block is no part of what is live, nor of the peak, until it is backed. */
static void test_uncounted(void **state)
{
    const struct spw_pool_placement wish = {
        .limit_bytes = UINT64_MAX, .lazy = true, .uncounted = true};
    struct spw_pool_usage usage;
    struct placed_pool w;
    uint64_t address;

    begin(&w);
    address = alloc_placed(&w, 11 * GRANULE, &wish);
    assert_int_equal(of(&w.to_commit), 1);
    assert_int_equal(of(&w.f.counters.live_peak_bytes), 0);
    assert_int_equal(of(&w.f.counters.async_live_bytes), 0);
    spw_pool_usage(w.f.pool, &usage);
    assert_int_equal(usage.live, 0);
    assert_int_equal(usage.lazy, 0);
    assert_int_equal(usage.uncounted, 11 * GRANULE);
    pool_check(&w.f);
    pool_free(&w.f, address, &stream_a);
    assert_int_equal(of(&w.to_commit), 0);
    assert_int_equal(of(&w.f.counters.live_peak_bytes), 0);
    assert_int_equal(of(&w.f.counters.committed_peak_bytes), 0);

    address = alloc_placed(&w, 5 * GRANULE, &wish);
    assert_int_equal(spw_pool_commit(w.f.pool, false), SPW_OK);
    assert_true(fake_vm_usable(&w.f.vm, address, 5 * GRANULE));
    assert_int_equal(of(&w.f.counters.live_bytes), 5 * GRANULE);
    spw_pool_usage(w.f.pool, &usage);
    assert_int_equal(usage.lazy, 0);
    assert_int_equal(usage.uncounted, 0);
    pool_check(&w.f);
    pool_free(&w.f, address, &stream_a);
    assert_int_equal(of(&w.f.counters.live_bytes), 0);
    pool_close(&w.f);
}

/* Memory that the program created itself is entered by hand. */
static void test_entries_by_hand(void **state)
{
    struct spw_pool_placement placement = {.limit_bytes = 4, .account = 1};
    struct placed_pool w;
    const struct spw_account *account = &w.accounts[0];

    begin(&w);
    assert_int_equal(spw_pool_account_add(w.f.pool, &placement, 2, /* host */ false), SPW_OK);
    assert_int_equal(spw_pool_account_add(w.f.pool, &placement, 3, /* host */ true), SPW_OK);
    assert_int_equal(of(&account->live), 5);
    assert_int_equal(of(&account->host), 3);
    assert_int_equal(of(&account->allocs), 2);
    /* The limit concerns the device. */
    assert_int_equal(spw_pool_account_add(w.f.pool, &placement, 3, /* host */ false), SPW_E_QUOTA);
    assert_int_equal(of(&account->live), 5);
    assert_int_equal(of(&account->allocs), 2);
    assert_int_equal(spw_pool_account_add(w.f.pool, &placement, 9, /* host */ true), SPW_OK);
    spw_pool_account_remove(w.f.pool, 1, 9, /* host */ true);
    assert_int_equal(of(&account->live), 5);
    assert_int_equal(of(&account->host), 3);
    spw_pool_account_to_device(w.f.pool, 1, 3);
    assert_int_equal(of(&account->live), 5);
    assert_int_equal(of(&account->host), 0);
    spw_pool_account_remove(w.f.pool, 1, 5, /* host */ false);
    assert_int_equal(of(&account->live), 0);
    assert_int_equal(of(&account->host), 0);
    placement.account = 0; /* none */
    assert_int_equal(spw_pool_account_add(w.f.pool, &placement, 5, /* host */ false), SPW_OK);
    pool_close(&w.f);
}

/* ---- anything may happen ---- */

struct slot {
    uint64_t address, bytes;
    uint8_t account;
    bool lazy;
};

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % below;
}

static struct spw_pool_placement draw_placement(uint64_t *random)
{
    struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX,
                                           .account = (uint8_t)(1 + draw(random, ACCOUNTS)),
                                           .heap = (uint8_t)draw(random, 3),
                                           .priority = (int32_t)draw(random, 5) - 2,
                                           .fixed = draw(random, 4) == 0};

    switch (draw(random, 6)) {
    case 0:
        placement.on_host = true;
        break;
    case 1:
        placement.host_permille = 250 * (uint32_t)(1 + draw(random, 4));
        break;
    case 2:
        placement.lazy = true;
        placement.uncounted = draw(random, 2) == 0;
        placement.account = placement.uncounted ? 0 : placement.account;
        break;
    case 3:
        placement.limit_bytes = 6 * GRANULE;
        break;
    default:
        break;
    }
    return placement;
}

static void fill(struct placed_pool *w, uint64_t *random, struct slot *slot)
{
    const struct spw_stream *streams[] = {&stream_a, &stream_b, NULL};
    struct spw_pool_placement placement = draw_placement(random);
    uint64_t bytes = 1 + draw(random, draw(random, 2) == 0 ? 8000 : 5 * GRANULE);
    uint64_t lazies = of(&w->to_commit);

    if (try_placed(w, bytes, streams[draw(random, 3)], &placement, draw(random, 5) == 0,
                   &slot->address) == SPW_OK) {
        slot->bytes = (bytes + 511) / 512 * 512;
        slot->account = placement.account;
        slot->lazy = of(&w->to_commit) > lazies;
        assert_true(slot->lazy || fake_vm_usable(&w->f.vm, slot->address, bytes));
    }
}

static void empty(struct placed_pool *w, uint64_t *random, struct slot *slot)
{
    pool_free(&w->f, slot->address, draw(random, 2) == 0 ? &stream_a : NULL);
    *slot = (struct slot){0};
}

/* After a commit that succeeds every block can be used. */
static void commit(struct placed_pool *w, uint64_t *random, struct slot *slots)
{
    if (spw_pool_commit(w->f.pool, draw(random, 2) == 0) == SPW_OK) {
        assert_int_equal(of(&w->to_commit), 0);
        for (int i = 0; i < SLOTS; i++) {
            assert_true(slots[i].bytes == 0 ||
                        fake_vm_usable(&w->f.vm, slots[i].address, slots[i].bytes));
        }
    }
    pool_check(&w->f);
}

static void check_accounts(struct placed_pool *w, const struct slot *slots)
{
    for (int account = 1; account <= ACCOUNTS; account++) {
        uint64_t live = 0;

        for (int i = 0; i < SLOTS; i++) {
            live += slots[i].account == account ? slots[i].bytes : 0;
        }
        assert_int_equal(of(&w->accounts[account - 1].live), live);
        assert_true(of(&w->accounts[account - 1].host) <= live);
    }
}

static void one_step(struct placed_pool *w, uint64_t *random, struct slot *slots)
{
    struct slot *slot = &slots[draw(random, SLOTS)];

    if (slot->bytes == 0) {
        fill(w, random, slot);
    } else {
        empty(w, random, slot);
    }
    if (draw(random, 16) == 0) {
        commit(w, random, slots);
    }
    if (draw(random, 32) == 0) {
        (void)spw_pool_trim(w->f.pool, 0);
        (void)spw_pool_trim_host(w->f.pool);
        pool_check(&w->f);
    }
}

/* True if the call that must fail was reached. */
static bool run(int fail_call, size_t fail_after, uint64_t random)
{
    struct slot slots[SLOTS] = {0};
    struct placed_pool w;
    bool reached;

    begin(&w);
    w.f.vm.fail_call = fail_call;
    w.f.vm.fail_after = fail_after;
    w.f.vm.seed = random;
    for (int i = 0; i < STEPS; i++) {
        one_step(&w, &random, slots);
        check_accounts(&w, slots);
    }
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].bytes != 0) {
            empty(&w, &random, &slots[i]);
        }
    }
    check_accounts(&w, slots);
    assert_int_equal(of(&w.to_commit), 0);
    reached = fail_call >= 0 && w.f.vm.calls[fail_call] > fail_after;
    w.f.vm.fail_call = -1;
    w.f.vm.immediate = true;
    fake_vm_complete(&w.f.vm);
    (void)spw_pool_trim(w.f.pool, 0);
    (void)spw_pool_trim_host(w.f.pool);
    if (!reached) {
        assert_int_equal(w.f.vm.chunks, 0);
        assert_int_equal(w.f.vm.host_chunks, 0);
    }
    pool_close(&w.f);
    return reached;
}

static void test_at_random(void **state)
{
    for (uint64_t random = 1; random <= 20; random++) {
        (void)run(-1, 0, random);
    }
}

static void test_faults(void **state)
{
    static const enum fake_call calls[] = {FAKE_CREATE, FAKE_MAP,   FAKE_ACCESS,
                                           FAKE_UNMAP,  FAKE_FENCE, FAKE_RELEASE};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        size_t after = 0;

        while (run((int)calls[i], after, 3)) {
            after += 1 + after / 8;
        }
        assert_true(after > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_host),
        cmocka_unit_test(test_host_is_full),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_share_is_mapped_again),
        cmocka_unit_test(test_share_makes_holes),
        cmocka_unit_test(test_share_spares_pending_memory),
        cmocka_unit_test(test_bytes_of_a_share),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_lazy),
        cmocka_unit_test(test_uncounted),
        cmocka_unit_test(test_at_random),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_numbered_heaps),
        cmocka_unit_test(test_entries_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
