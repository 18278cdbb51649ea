/* The stock of chunks by itself: which chunk is found, and what is released and created for it. */
#include "pool/memory/stock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fake_vm.h"

enum { GRANULE = FAKE_GRANULE, ARENA = 64 };

static const enum spw_tier DEVICE = SPW_TIER_DEVICE, HOST = SPW_TIER_HOST;

static struct fake_vm vm;
static struct spw_counters counters;
static struct spw_stock stock;
static _Atomic uint64_t host_chunks;

static void open_stock(void)
{
    uint64_t base;

    fake_vm_init(&vm);
    counters = (struct spw_counters){0};
    host_chunks = 0;
    assert_int_equal(vm.seam.ops->reserve(&vm.seam, (uint64_t)ARENA * GRANULE, &base), SPW_OK);
    stock = (struct spw_stock){.vm = &vm.seam,
                               .granule_bytes = GRANULE,
                               .counters = &counters,
                               .host_chunks = &host_chunks};
    stock.aliases = (struct spw_aliases){.vm = &vm.seam,
                                         .granule_bytes = GRANULE,
                                         .next = base,
                                         .end = base + (uint64_t)ARENA * GRANULE};
}

static void close_stock(void)
{
    (void)spw_pool_stock_release(&stock, DEVICE, SIZE_MAX);
    (void)spw_pool_stock_release(&stock, HOST, SIZE_MAX);
    assert_int_equal(vm.chunks, 0);
    assert_int_equal(vm.host_chunks, 0);
    assert_int_equal(vm.violations, 0);
    spw_pool_stock_fini(&stock, DEVICE);
    spw_pool_stock_fini(&stock, HOST);
    spw_pool_alias_fini(&stock.aliases);
    fake_vm_fini(&vm);
}

/* Creates spare chunks of one order. */
static void create(enum spw_tier tier, unsigned order, size_t count)
{
    while (count-- > 0) {
        assert_int_equal(spw_pool_stock_create(&stock, tier, order), SPW_OK);
    }
    vm.calls[FAKE_CREATE] = vm.calls[FAKE_RELEASE] = 0;
}

/* The numbers of spare chunks of the device, of orders 0 to 3. */
static void expect_spare(size_t zero, size_t one, size_t two, size_t three)
{
    const size_t expected[] = {zero, one, two, three};
    size_t sum = 0;

    for (unsigned order = 0; order < 4; order++) {
        assert_int_equal(stock.tiers[DEVICE].orders[order].count, expected[order]);
        sum += expected[order] << order;
    }
    assert_int_equal(stock.tiers[DEVICE].spare, sum);
}

/* The granules of the device's chunks, and of those of the host. */
static void expect_total(size_t device, size_t host)
{
    assert_int_equal(stock.tiers[DEVICE].total, device);
    assert_int_equal(vm.chunks, device);
    assert_int_equal(spw_counter_get(&counters.committed_bytes), device * GRANULE);
    assert_int_equal(stock.tiers[HOST].total, host);
    assert_int_equal(vm.host_chunks, host);
    assert_int_equal(spw_counter_get(&counters.host_bytes), host * GRANULE);
    assert_int_equal(host_chunks, host);
}

static void expect_calls(size_t creates, size_t releases)
{
    assert_int_equal(vm.calls[FAKE_CREATE], creates);
    assert_int_equal(vm.calls[FAKE_RELEASE], releases);
}

/* ---- counting ---- */

static void test_figures(void **state)
{
    open_stock();
    create(DEVICE, 2, 2);
    create(HOST, 1, 1);
    expect_total(8, 2);
    assert_int_equal(spw_counter_get(&counters.committed_peak_bytes), 8 * GRANULE);
    assert_int_equal(spw_counter_get(&counters.host_peak_bytes), 2 * GRANULE);
    /* Spare chunks of the host do not count as reserved; used ones do. */
    assert_int_equal(spw_counter_get(&counters.reserved_peak_bytes), 8 * GRANULE);
    spw_counter_set(&counters.host_used_bytes, GRANULE);
    spw_pool_stock_note_reserved(&counters);
    assert_int_equal(spw_counter_get(&counters.reserved_peak_bytes), 9 * GRANULE);
    spw_counter_set(&counters.host_used_bytes, 0);
    assert_int_equal(spw_pool_stock_release(&stock, DEVICE, 4), 4);
    expect_total(4, 2);
    assert_int_equal(spw_counter_get(&counters.committed_peak_bytes), 8 * GRANULE);
    assert_int_equal(spw_counter_get(&counters.reserved_peak_bytes), 9 * GRANULE);
    assert_int_equal(spw_pool_stock_release(&stock, HOST, SIZE_MAX), 2);
    expect_total(4, 0);
    close_stock();
}

/* A chunk that was put last is taken first. */
static void test_put_and_take(void **state)
{
    uint64_t first, second;

    open_stock();
    create(DEVICE, 1, 2);
    first = spw_pool_stock_take(&stock, DEVICE, 1);
    second = spw_pool_stock_take(&stock, DEVICE, 1);
    assert_int_not_equal(first, second);
    expect_spare(0, 0, 0, 0);
    spw_pool_stock_put(&stock, DEVICE, 1, first);
    expect_spare(0, 1, 0, 0);
    spw_pool_stock_put(&stock, DEVICE, 1, second);
    assert_int_equal(spw_pool_stock_take(&stock, DEVICE, 1), second);
    spw_pool_stock_put(&stock, DEVICE, 1, second);
    close_stock();
}

static void test_many_chunks(void **state)
{
    enum { MANY = 200 };

    open_stock();
    create(DEVICE, 0, MANY);
    expect_total(MANY, 0);
    assert_int_equal(spw_pool_stock_release(&stock, DEVICE, MANY - 1), MANY - 1);
    expect_total(1, 0);
    close_stock();
}

/* Chunks that are released leave their records to the next ones. */
static void test_records_of_released_chunks(void **state)
{
    size_t capacity;

    open_stock();
    create(DEVICE, 0, 1);
    capacity = stock.tiers[DEVICE].orders[0].capacity;
    for (size_t i = 0; i < 4 * capacity; i++) {
        assert_int_equal(spw_pool_stock_release(&stock, DEVICE, 1), 1);
        create(DEVICE, 0, 1);
    }
    assert_int_equal(stock.tiers[DEVICE].orders[0].capacity, capacity);
    close_stock();
}

/* A chunk that is not created is not counted. */
static void test_refused(void **state)
{
    open_stock();
    vm.most_chunks = 3;
    assert_int_equal(spw_pool_stock_create(&stock, DEVICE, 2), SPW_E_NO_MEMORY);
    expect_total(0, 0);
    assert_int_equal(spw_pool_stock_create(&stock, DEVICE, 1), SPW_OK);
    expect_total(2, 0);
    vm.fail_call = FAKE_RELEASE;
    vm.fail_after = 0;
    assert_int_equal(spw_pool_stock_release(&stock, DEVICE, 2), 0);
    expect_total(2, 0);
    expect_spare(0, 1, 0, 0);
    vm.fail_call = -1;
    close_stock();
}

/* ---- finding ---- */

/* Finds a chunk of at most `most` granules, which must have this order. */
static void find(size_t most, unsigned expected)
{
    unsigned order = 77;

    assert_int_equal(spw_pool_stock_find(&stock, DEVICE, most, &order), SPW_OK);
    assert_int_equal(order, expected);
    assert_true(stock.tiers[DEVICE].orders[order].count > 0);
}

static void test_largest_that_fits(void **state)
{
    unsigned order;

    open_stock();
    assert_int_equal(spw_pool_stock_find(&stock, DEVICE, 1, &order), SPW_E_NO_MEMORY);
    create(DEVICE, 0, 1);
    create(DEVICE, 2, 1);
    find(1, 0);
    find(3, 0);
    find(4, 2);
    find(7, 2);
    find(100, 2);
    expect_calls(0, 0);
    close_stock();
}

/* When all are larger, the smallest of them is replaced by parts, two of the wanted size. */
static void test_split(void **state)
{
    open_stock();
    create(DEVICE, 3, 2);
    find(3, 1);
    expect_spare(0, 2, 1, 1);
    expect_calls(3, 1);
    expect_total(16, 0);
    create(DEVICE, 0, 0);
    find(1, 0);
    expect_spare(2, 1, 1, 1);
    expect_calls(2, 1);
    close_stock();
}

/* If a part cannot be created, what there is of the chunk is kept. */
static void test_split_fails(void **state)
{
    unsigned order;

    open_stock();
    create(DEVICE, 2, 1);
    vm.fail_call = FAKE_RELEASE;
    vm.fail_after = 0;
    assert_int_equal(spw_pool_stock_find(&stock, DEVICE, 1, &order), SPW_E_NO_MEMORY);
    expect_spare(0, 0, 1, 0);
    vm.fail_call = FAKE_CREATE;
    vm.fail_after = 1;
    assert_int_equal(spw_pool_stock_find(&stock, DEVICE, 1, &order), SPW_E_NO_MEMORY);
    expect_spare(1, 0, 0, 0);
    expect_total(1, 0);
    vm.fail_call = -1;
    close_stock();
}

/* Much smaller chunks are merged, as far as that is allowed and they suffice. */
static void test_merge(void **state)
{
    const struct {
        unsigned merge_order;
        size_t spare[3], most;
        unsigned found;
        size_t left[3], creates, releases;
    } rows[] = {
        {3, {8, 0, 0}, 8, 3, {0, 0, 0}, 1, 8},  {3, {0, 4, 0}, 8, 3, {0, 0, 0}, 1, 4},
        {3, {0, 0, 2}, 8, 2, {0, 0, 2}, 0, 0},  {3, {3, 3, 0}, 8, 3, {1, 0, 0}, 1, 5},
        {3, {7, 0, 0}, 8, 0, {7, 0, 0}, 0, 0},  {2, {8, 0, 0}, 8, 2, {4, 0, 0}, 1, 4},
        {1, {8, 0, 0}, 8, 0, {8, 0, 0}, 0, 0},  {0, {8, 0, 0}, 8, 0, {8, 0, 0}, 0, 0},
        {3, {8, 0, 0}, 7, 2, {4, 0, 0}, 1, 4},  {3, {8, 0, 0}, 3, 0, {8, 0, 0}, 0, 0},
        {3, {0, 5, 0}, 15, 3, {0, 1, 0}, 1, 4},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        open_stock();
        for (unsigned order = 0; order < 3; order++) {
            create(DEVICE, order, rows[i].spare[order]);
        }
        stock.merge_order = rows[i].merge_order;
        find(rows[i].most, rows[i].found);
        expect_spare(rows[i].left[0] + (rows[i].creates > 0 && rows[i].found == 0),
                     rows[i].left[1] + (rows[i].creates > 0 && rows[i].found == 1),
                     rows[i].left[2] + (rows[i].creates > 0 && rows[i].found == 2),
                     rows[i].creates > 0 && rows[i].found == 3);
        expect_calls(rows[i].creates, rows[i].releases);
        close_stock();
    }
}

/* If merging fails, what is left of the small ones is found. */
static void test_merge_fails(void **state)
{
    unsigned order;

    open_stock();
    create(DEVICE, 0, 5);
    stock.merge_order = 2;
    vm.fail_call = FAKE_CREATE;
    vm.fail_after = 0;
    find(4, 0);
    expect_spare(1, 0, 0, 0);
    create(DEVICE, 0, 3);
    vm.fail_after = 0;
    assert_int_equal(spw_pool_stock_find(&stock, DEVICE, 4, &order), SPW_E_NO_MEMORY);
    expect_total(0, 0);
    create(DEVICE, 0, 4);
    vm.fail_call = FAKE_RELEASE;
    vm.fail_after = 2;
    find(4, 0);
    expect_spare(2, 0, 0, 0);
    vm.fail_call = -1;
    close_stock();
}

/* ---- releasing ---- */

/* So many granules are released, whatever the sizes; what is larger is split. */
static void test_release(void **state)
{
    open_stock();
    create(DEVICE, 3, 1);
    create(DEVICE, 0, 1);
    assert_int_equal(spw_pool_stock_release(&stock, DEVICE, 3), 3);
    expect_spare(0, 1, 1, 0);
    expect_total(6, 0);
    assert_int_equal(spw_pool_stock_release(&stock, DEVICE, 0), 0);
    assert_int_equal(spw_pool_stock_release(&stock, DEVICE, 100), 6);
    assert_int_equal(spw_pool_stock_release(&stock, DEVICE, 1), 0);
    expect_total(0, 0);
    close_stock();
}

/* ---- holding ---- */

static uint64_t hold(unsigned order, size_t may_add)
{
    uint64_t chunk = 0, alias = 0;

    assert_int_equal(spw_pool_stock_hold(&stock, DEVICE, order, may_add, &chunk, &alias), SPW_OK);
    assert_true(fake_vm_usable(&vm, alias, (uint64_t)GRANULE << order));
    assert_int_equal(vm.mapped[(alias - vm.base) / GRANULE], chunk);
    return chunk;
}

static void test_hold(void **state)
{
    uint64_t chunk;

    open_stock();
    create(DEVICE, 1, 1);
    chunk = hold(1, 0);
    expect_spare(0, 0, 0, 0);
    expect_calls(0, 0);
    assert_int_equal(stock.tiers[DEVICE].held, 2);
    expect_total(2, 0);
    spw_pool_stock_unhold(&stock, DEVICE, 1, chunk);
    expect_spare(0, 1, 0, 0);
    assert_int_equal(stock.tiers[DEVICE].held, 0);
    /* It stays mapped, until it is released. */
    vm.calls[FAKE_MAP] = 0;
    spw_pool_stock_unhold(&stock, DEVICE, 1, hold(1, 0));
    assert_int_equal(vm.calls[FAKE_MAP], 0);
    close_stock();
}

/* Without a spare one, a larger one is split, or one is created if that may be, or smaller ones are
 * merged; else there is none. */
static void test_hold_another_size(void **state)
{
    uint64_t chunk, alias;

    open_stock();
    create(DEVICE, 3, 1);
    spw_pool_stock_unhold(&stock, DEVICE, 1, hold(1, 100));
    expect_calls(3, 1);
    close_stock();
    open_stock();
    create(DEVICE, 0, 2);
    spw_pool_stock_unhold(&stock, DEVICE, 1, hold(1, 2));
    expect_calls(1, 0);
    close_stock();
    open_stock();
    create(DEVICE, 0, 2);
    spw_pool_stock_unhold(&stock, DEVICE, 1, hold(1, 1));
    expect_calls(1, 2);
    close_stock();
    open_stock();
    create(DEVICE, 0, 2);
    vm.most_chunks = 3; /* refuses another */
    spw_pool_stock_unhold(&stock, DEVICE, 1, hold(1, 2));
    expect_calls(2, 2);
    close_stock();
    open_stock();
    create(DEVICE, 0, 1);
    assert_int_equal(spw_pool_stock_hold(&stock, DEVICE, 1, 1, &chunk, &alias), SPW_E_NO_MEMORY);
    expect_spare(1, 0, 0, 0);
    expect_calls(0, 0);
    close_stock();
}

/* Without a second address nothing is held. */
static void test_no_alias(void **state)
{
    static const enum fake_call calls[] = {FAKE_MAP, FAKE_ACCESS};
    uint64_t chunk = 4711, alias;

    for (size_t i = 0; i < 2; i++) {
        open_stock();
        create(DEVICE, 1, 1);
        vm.fail_call = (int)calls[i];
        vm.fail_after = 0;
        assert_true(spw_pool_stock_hold(&stock, DEVICE, 1, 0, &chunk, &alias) < 0);
        assert_int_equal(chunk, 4711);
        expect_spare(0, 1, 0, 0);
        assert_int_equal(stock.tiers[DEVICE].held, 0);
        vm.fail_after = 0;
        assert_true(spw_pool_stock_hold_exportable(&stock, 1, &chunk, &alias) < 0);
        assert_int_equal(chunk, 4711);
        expect_total(2, 0);
        vm.fail_call = -1;
        close_stock();
    }
}

/* An alias takes as many addresses as the chunk has, and gives them back. */
static void test_aliases_run_out(void **state)
{
    uint64_t chunk, alias, held[ARENA / 4];

    open_stock();
    create(DEVICE, 2, ARENA / 4);
    for (size_t i = 0; i < ARENA / 4; i++) {
        held[i] = hold(2, 0);
    }
    create(DEVICE, 0, 1);
    assert_int_equal(spw_pool_stock_hold(&stock, DEVICE, 0, 0, &chunk, &alias), SPW_E_NO_MEMORY);
    expect_spare(1, 0, 0, 0);
    for (size_t i = 0; i < ARENA / 4; i++) {
        spw_pool_stock_unhold(&stock, DEVICE, 2, held[i]);
    }
    assert_int_equal(spw_pool_stock_release(&stock, DEVICE, SIZE_MAX), ARENA + 1);
    create(DEVICE, 2, 1);
    spw_pool_stock_unhold(&stock, DEVICE, 2, hold(2, 0));
    close_stock();
}

/* ---- exportable chunks ---- */

static void test_exportable(void **state)
{
    uint64_t chunk, alias;

    open_stock();
    assert_int_equal(spw_pool_stock_hold_exportable(&stock, 2, &chunk, &alias), SPW_OK);
    assert_true(fake_vm_usable(&vm, alias, 4 * GRANULE));
    expect_total(4, 0);
    assert_int_equal(stock.tiers[DEVICE].held, 4);
    assert_int_equal(stock.tiers[DEVICE].spare, 0);
    stock.tiers[DEVICE].held -= 4; /* it is mapped in the arena, as it were */
    /* When the driver does not release it, it is held for good. */
    vm.fail_call = FAKE_UNMAP;
    vm.unmap_fails = true;
    spw_pool_stock_discard(&stock, 2, chunk);
    assert_int_equal(stock.tiers[DEVICE].held, 4);
    expect_total(4, 0);
    vm.unmap_fails = false;
    vm.fail_call = -1;
    stock.tiers[DEVICE].held -= 4;
    spw_pool_stock_discard(&stock, 2, chunk);
    assert_int_equal(stock.tiers[DEVICE].held, 0);
    expect_total(0, 0);
    close_stock();
}

/* Chunks that were not released are no longer counted at the end. */
static void test_end(void **state)
{
    open_stock();
    create(DEVICE, 1, 1);
    create(HOST, 2, 1);
    spw_pool_stock_fini(&stock, DEVICE);
    spw_pool_stock_fini(&stock, HOST);
    assert_int_equal(spw_counter_get(&counters.committed_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.host_bytes), 0);
    assert_int_equal(host_chunks, 0);
    spw_pool_alias_fini(&stock.aliases);
    fake_vm_fini(&vm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_put_and_take),
        cmocka_unit_test(test_many_chunks),
        cmocka_unit_test(test_records_of_released_chunks),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_largest_that_fits),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_split_fails),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_merge_fails),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_hold_another_size),
        cmocka_unit_test(test_no_alias),
        cmocka_unit_test(test_aliases_run_out),
        cmocka_unit_test(test_exportable),
        cmocka_unit_test(test_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
