/* The table of granules by itself: mapping and unmapping, what may be stolen, and what is lost. */
#include "pool/memory/backing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fake_vm.h"

enum { GRANULE = FAKE_GRANULE, ARENA = 256, ALIASES = 65 };

static const enum spw_tier DEVICE = SPW_TIER_DEVICE, HOST = SPW_TIER_HOST;
static const struct spw_stream stream_a = {.id = 1}, stream_b = {.id = 2};

static struct fake_vm vm;
static struct spw_counters counters;
static struct spw_stream_queues queues;
static struct spw_backing backing;

static void open_backing(void)
{
    fake_vm_init(&vm);
    counters = (struct spw_counters){0};
    assert_int_equal(spw_pool_stream_queues_init(&queues, &vm.seam), SPW_OK);
    assert_int_equal(
        spw_pool_backing_init(
            &backing, &(struct spw_backing_config){.vm = &vm.seam,
                                                   .queues = &queues,
                                                   .counters = &counters,
                                                   .arena_bytes = (uint64_t)ARENA * GRANULE,
                                                   .alias_bytes = (uint64_t)ALIASES * GRANULE,
                                                   .granule_bytes = GRANULE}),
        SPW_OK);
}

static void close_backing(void)
{
    spw_pool_backing_fini(&backing, true);
    spw_pool_stream_queues_fini(&queues, true);
    assert_int_equal(vm.chunks, 0);
    assert_int_equal(vm.host_chunks, 0);
    assert_int_equal(vm.violations, 0);
    assert_int_equal(spw_counter_get(&counters.committed_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.host_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.host_used_bytes), 0);
    fake_vm_fini(&vm);
}

static uint64_t at(size_t granule)
{
    return backing.base + granule * GRANULE;
}

static void create(enum spw_tier tier, unsigned order, size_t count)
{
    while (count-- > 0) {
        assert_int_equal(spw_pool_stock_create(&backing.stock, tier, order), SPW_OK);
    }
}

static void forget_calls(void)
{
    for (int i = 0; i < FAKE_CALLS; i++) {
        vm.calls[i] = 0;
    }
}

static void fill(size_t first, size_t last, size_t host)
{
    assert_int_equal(spw_pool_backing_fill(&backing, at(first), at(last), host), SPW_OK);
    assert_true(fake_vm_usable(&vm, at(first), (last - first) * GRANULE));
}

/* Backs granules with chunks of their own. */
static void back(size_t first, size_t last)
{
    create(DEVICE, 0, last - first);
    fill(first, last, 0);
    forget_calls();
}

static size_t steal(size_t first, size_t last, size_t most)
{
    return spw_pool_backing_steal(&backing, DEVICE, at(first), at(last), most);
}

static size_t missing(size_t first, size_t last)
{
    return spw_pool_backing_missing(&backing, at(first), at(last));
}

/* ---- mapping ---- */

static void test_fill(void **state)
{
    open_backing();
    create(DEVICE, 0, 6);
    forget_calls();
    fill(1, 4, 0);
    assert_int_equal(vm.calls[FAKE_MAP], 3);
    assert_int_equal(vm.calls[FAKE_ACCESS], 1);
    assert_int_equal(spw_pool_backing_spare(&backing), 3);
    assert_int_equal(missing(0, 6), 3);
    forget_calls();
    fill(1, 4, 0);
    assert_int_equal(fake_vm_calls(&vm), 0);
    /* Both ends are new; a part of a granule counts as one. */
    assert_int_equal(spw_pool_backing_fill(&backing, at(1) - 1, at(4) + 1, 0), SPW_OK);
    assert_int_equal(vm.calls[FAKE_MAP], 2);
    assert_int_equal(vm.calls[FAKE_ACCESS], 2);
    assert_int_equal(missing(0, 6), 1);
    assert_int_equal(spw_pool_backing_missing(&backing, at(4), at(5) + 1), 1);
    assert_int_equal(spw_pool_backing_missing(&backing, at(4) + 1, at(5)), 0);
    close_backing();
}

/* Access is given to neighbours of one size together. */
static void test_sizes(void **state)
{
    open_backing();
    create(DEVICE, 2, 2);
    create(DEVICE, 0, 2);
    forget_calls();
    fill(0, 10, 0);
    assert_int_equal(vm.calls[FAKE_MAP], 4);
    assert_int_equal(vm.calls[FAKE_ACCESS], 2);
    assert_int_equal(spw_pool_backing_end_of_size(&backing, 0, 10), 8);
    assert_int_equal(spw_pool_backing_end_of_size(&backing, 0, 4), 4);
    assert_int_equal(spw_pool_backing_end_of_size(&backing, 8, 10), 10);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(spw_pool_backing_chunk_begin(&backing, i), i / 4 * 4);
        assert_int_equal(spw_pool_backing_chunk_end(&backing, i), i / 4 * 4 + 4);
    }
    close_backing();
}

/* Chunks of the device take the places of those of the host that there are too few of. */
static void test_too_few_of_the_host(void **state)
{
    open_backing();
    create(DEVICE, 0, 4);
    create(SPW_TIER_HOST, 0, 1);
    fill(0, 4, 2);
    assert_int_equal(fake_vm_on_host(&vm, at(0), 4 * GRANULE), 1);
    assert_int_equal(spw_pool_backing_spare(&backing), 1);
    close_backing();
}

/* The host's part is spread evenly; what the device does not have comes from the host, too. */
static void test_host(void **state)
{
    const uint8_t expected[] = {0, 0, 1, 0, 0, 1, 0, 1};

    open_backing();
    create(DEVICE, 0, 5);
    create(HOST, 0, 3);
    fill(0, 8, 3);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(backing.granules[i].tier, expected[i]);
    }
    assert_int_equal(spw_counter_get(&counters.host_used_bytes), 3 * GRANULE);
    create(DEVICE, 0, 1);
    create(HOST, 1, 1);
    fill(8, 11, 0);
    assert_int_equal(fake_vm_on_host(&vm, at(8), GRANULE), 0);
    assert_int_equal(fake_vm_on_host(&vm, at(8), 3 * GRANULE), 2);
    create(HOST, 2, 1);
    forget_calls();
    fill(11, 15, 4); /* all of it: one chunk */
    assert_int_equal(vm.calls[FAKE_MAP], 1);
    close_backing();
}

static void test_where_the_host_is(void **state)
{
    open_backing();
    assert_false(spw_pool_backing_on_host(&backing, at(0), at(4)));
    create(DEVICE, 0, 3);
    create(HOST, 0, 1);
    fill(0, 2, 0);
    create(DEVICE, 0, 0);
    fill(3, 4, 0);
    fill(2, 3, 1);
    assert_false(spw_pool_backing_on_host(&backing, at(0), at(2)));
    assert_true(spw_pool_backing_on_host(&backing, at(0), at(2) + 1));
    assert_true(spw_pool_backing_on_host(&backing, at(3) - 1, at(4)));
    assert_false(spw_pool_backing_on_host(&backing, at(3), at(4)));
    assert_int_equal(spw_pool_backing_host_bytes(&backing, at(0), at(2)), 0);
    assert_int_equal(spw_pool_backing_host_bytes(&backing, at(0), at(2) + 100), 100);
    assert_int_equal(spw_pool_backing_host_bytes(&backing, at(2) + 100, at(3)), GRANULE - 100);
    assert_int_equal(spw_pool_backing_host_bytes(&backing, at(2) + 100, at(2) + 150), 50);
    assert_int_equal(spw_pool_backing_host_bytes(&backing, at(0) + 7, at(4)), GRANULE);
    close_backing();
}

/* ---- mapping fails ---- */

/* Chunks that were mapped are unmapped again and spare, whichever call fails. */
static void test_fill_fails(void **state)
{
    static const struct {
        enum fake_call call;
        size_t after;
    } rows[] = {{FAKE_MAP, 0}, {FAKE_MAP, 2}, {FAKE_ACCESS, 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        open_backing();
        create(DEVICE, 0, 3);
        vm.fail_call = (int)rows[i].call;
        vm.fail_after = rows[i].after;
        assert_true(spw_pool_backing_fill(&backing, at(0), at(3), 0) < 0);
        assert_int_equal(missing(0, 3), 3);
        assert_int_equal(spw_pool_backing_spare(&backing), 3);
        assert_int_equal(backing.broken, 0);
        vm.fail_call = -1;
        fill(0, 3, 0);
        close_backing();
    }
}

/* Granules that got no access and are not unmapped either serve nothing. */
static void test_fill_leaves_broken_granules(void **state)
{
    open_backing();
    create(DEVICE, 0, 4);
    fill(0, 1, 0);
    vm.keeps_inaccessible = true;
    vm.fail_call = FAKE_ACCESS;
    vm.fail_after = 0;
    assert_true(spw_pool_backing_fill(&backing, at(0), at(4), 0) < 0);
    vm.fail_call = -1;
    assert_int_equal(backing.broken, 3);
    assert_false(spw_pool_backing_is_broken(&backing, at(0), at(1)));
    assert_true(spw_pool_backing_is_broken(&backing, at(0), at(1) + 1));
    assert_true(spw_pool_backing_is_broken(&backing, at(4) - 1, at(4)));
    assert_false(spw_pool_backing_is_broken(&backing, at(4), at(5)));
    assert_int_equal(steal(0, 4, 4), 1);
    vm.keeps_inaccessible = false;
    close_backing();
}

/* ---- stealing ---- */

/* From the high end, no more than needed, in one call. */
static void test_steal(void **state)
{
    open_backing();
    back(0, 6);
    assert_int_equal(spw_pool_backing_stealable(&backing, at(0), at(6)), 6);
    assert_int_equal(steal(0, 6, 2), 2);
    assert_int_equal(vm.calls[FAKE_UNMAP], 1);
    assert_int_equal(missing(0, 4), 0);
    assert_int_equal(missing(4, 6), 2);
    assert_int_equal(spw_pool_backing_spare(&backing), 2);
    assert_int_equal(steal(0, 6, 0), 0);
    assert_int_equal(steal(0, 6, 100), 4);
    assert_int_equal(steal(0, 6, 100), 0);
    assert_int_equal(spw_pool_backing_steal(&backing, HOST, at(0), at(6), 100), 0);
    close_backing();
}

/* Only granules that lie in the range as a whole. */
static void test_steal_whole_granules(void **state)
{
    open_backing();
    back(0, 3);
    assert_int_equal(spw_pool_backing_stealable(&backing, at(0) + 1, at(3) - 1), 1);
    assert_int_equal(spw_pool_backing_stealable(&backing, at(1) + 1, at(2) + 1), 0);
    assert_int_equal(spw_pool_backing_stealable(&backing, at(1) + 1, at(2)), 0);
    assert_int_equal(spw_pool_backing_steal(&backing, DEVICE, at(1) + 1, at(2) + 1, 9), 0);
    assert_int_equal(spw_pool_backing_steal(&backing, DEVICE, at(0) + 1, at(3) - 1, 9), 1);
    assert_int_equal(missing(1, 2), 1);
    assert_int_equal(missing(0, 3), 1);
    close_backing();
}

/* A granule that is pinned, broken, pending or to be kept divides the range. */
static void test_steal_around(void **state)
{
    struct spw_stream_queue *queue;

    for (int why = 0; why < 4; why++) {
        open_backing();
        back(0, 5);
        queue = spw_pool_stream_queue_of(&queues, &stream_a);
        if (why == 0) {
            backing.granules[2].pinned = true;
        } else if (why == 1) {
            spw_pool_backing_mark_broken(&backing, 2);
        } else if (why == 2) {
            queue->seq = ++queues.clock;
            spw_pool_backing_note_free(&backing, at(2), at(3), queue);
        } else {
            spw_pool_backing_keep(&backing, at(2), at(3), true);
        }
        assert_int_equal(spw_pool_backing_stealable(&backing, at(0), at(5)), 4);
        assert_int_equal(steal(0, 5, 3), 3);
        assert_int_equal(vm.calls[FAKE_UNMAP], 2);
        assert_int_equal(missing(0, 5), 3);
        assert_int_equal(missing(0, 1), 0);
        assert_int_equal(missing(2, 3), 0);
        backing.granules[2].pinned = false;
        queue->done = queue->seq;
        backing.takes_kept = true;
        assert_int_equal(steal(0, 5, 9), why == 1 ? 1 : 2);
        close_backing();
    }
}

/* Granules are kept one by one, also beyond the first 64. */
static void test_keep(void **state)
{
    open_backing();
    spw_pool_backing_keep(&backing, at(0), at(100), false);
    assert_null(backing.kept);
    back(60, 70);
    spw_pool_backing_keep(&backing, at(62) + 1, at(66) - 1, true);
    assert_int_equal(spw_pool_backing_stealable(&backing, at(60), at(70)), 6);
    spw_pool_backing_keep(&backing, at(63), at(65), false);
    assert_int_equal(spw_pool_backing_stealable(&backing, at(60), at(70)), 8);
    assert_int_equal(steal(60, 70, 99), 8);
    assert_int_equal(missing(62, 63), 0);
    assert_int_equal(missing(65, 66), 0);
    close_backing();
}

/* A chunk is stolen as a whole, if all of it lies in the range and may go. */
static void test_steal_chunks(void **state)
{
    open_backing();
    create(DEVICE, 2, 2);
    fill(0, 8, 0);
    assert_int_equal(spw_pool_backing_stealable(&backing, at(1), at(8)), 4);
    assert_int_equal(spw_pool_backing_stealable(&backing, at(0), at(7)), 4);
    assert_int_equal(steal(1, 7, 9), 0);
    backing.granules[5].pinned = true;
    assert_int_equal(spw_pool_backing_stealable(&backing, at(0), at(8)), 4);
    assert_int_equal(steal(0, 8, 1), 4);
    assert_int_equal(missing(0, 8), 4);
    assert_int_equal(missing(4, 8), 0);
    backing.granules[5].pinned = false;
    close_backing();
}

/* When the driver unmaps only a part, that part is spare. */
static void test_steal_fails(void **state)
{
    open_backing();
    back(0, 4);
    vm.fail_call = FAKE_UNMAP;
    vm.fail_after = 0;
    assert_int_equal(steal(0, 4, 4), 2); /* the driver stops half-way */
    assert_int_equal(missing(0, 2), 2);
    assert_int_equal(missing(2, 4), 0);
    assert_int_equal(vm.calls[FAKE_UNMAP], 1);
    vm.fail_call = -1;
    assert_int_equal(steal(0, 4, 4), 2);
    close_backing();
}

/* ---- order ---- */

static void note_free(size_t granule, struct spw_stream_queue *queue)
{
    queue->seq = ++queues.clock;
    spw_pool_backing_note_free(&backing, at(granule), at(granule + 1), queue);
}

/* The last free of one queue counts; of two that are pending, only one of the whole device does. */
static void test_frees(void **state)
{
    const struct spw_granule *granule;
    struct spw_stream_queue *a, *b;

    open_backing();
    back(0, 2);
    granule = &backing.granules[0];
    a = spw_pool_stream_queue_of(&queues, &stream_a);
    b = spw_pool_stream_queue_of(&queues, &stream_b);
    note_free(0, a);
    note_free(0, a);
    assert_int_equal(granule->queue, a->number);
    assert_int_equal(granule->seq, 2);
    a->done = 2;
    note_free(0, b);
    assert_int_equal(granule->queue, b->number);
    assert_int_equal(granule->seq, 3);
    b->done = 2; /* not yet */
    note_free(0, a);
    assert_int_equal(granule->queue, SPW_STREAM_QUEUE_ALL);
    assert_int_equal(granule->seq, 4);
    assert_int_equal(spw_pool_stream_queue_all(&queues)->seq, 4);
    assert_int_equal(backing.granules[1].queue, SPW_STREAM_QUEUE_IDLE);
    assert_int_equal(backing.granules[1].seq, 0);
    close_backing();
}

/* ---- what is lost ---- */

static void test_lost(void **state)
{
    open_backing();
    create(DEVICE, 1, 1);
    create(DEVICE, 0, 1);
    fill(0, 3, 0);
    spw_pool_backing_mark_lost(&backing, 0, SPW_LOST_ACCESS);
    assert_int_equal(backing.lost, 2);
    assert_int_equal(backing.broken, 2);
    spw_pool_backing_mark_lost(&backing, 0, SPW_LOST_MAPPING);
    spw_pool_backing_mark_lost(&backing, 2, SPW_LOST_ACCESS);
    assert_int_equal(backing.lost, 3);
    assert_int_equal(backing.broken, 3);
    assert_int_equal(backing.granules[1].lost, SPW_LOST_MAPPING);
    spw_pool_backing_mark_broken(&backing, 2);
    assert_int_equal(backing.broken, 3);
    spw_pool_backing_mark_lost(&backing, 2, SPW_LOST_NOTHING);
    spw_pool_backing_mark_lost(&backing, 2, SPW_LOST_NOTHING);
    assert_int_equal(backing.lost, 2);
    assert_int_equal(backing.broken, 2);
    assert_false(spw_pool_backing_is_broken(&backing, at(2), at(3)));
    assert_true(spw_pool_backing_is_broken(&backing, at(1), at(3)));
    spw_pool_backing_mark_lost(&backing, 0, SPW_LOST_NOTHING);
    assert_int_equal(backing.lost, 0);
    close_backing();
}

/* Chunks that are not mapped at the end are released all the same. */
static void test_end_with_lost_mappings(void **state)
{
    open_backing();
    create(DEVICE, 1, 1);
    create(DEVICE, 0, 2);
    fill(0, 4, 0);
    vm.unmap_fails = false;
    {
        uint64_t done;

        assert_int_equal(vm.seam.ops->unmap(&vm.seam, at(0), 2 * (uint64_t)GRANULE,
                                            2 * (uint64_t)GRANULE, &done),
                         SPW_OK);
    }
    spw_pool_backing_mark_lost(&backing, 0, SPW_LOST_MAPPING);
    close_backing();
}

/* Without a release nothing is called, and only this pool's part leaves the counters. */
static void test_abandoned(void **state)
{
    open_backing();
    create(HOST, 0, 2);
    create(DEVICE, 0, 1);
    fill(0, 3, 2);
    spw_counter_shift(&counters.host_used_bytes, GRANULE); /* another pool's */
    forget_calls();
    spw_pool_backing_fini(&backing, false);
    assert_int_equal(fake_vm_calls(&vm), 0);
    assert_int_equal(spw_counter_get(&counters.committed_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.host_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.host_used_bytes), GRANULE);
    spw_pool_backing_fini(&backing, false); /* nothing is left */
    spw_pool_stream_queues_fini(&queues, false);
    fake_vm_fini(&vm);
}

/* ---- access ---- */

/* Changed access reaches what is mapped, in as few calls as there are sizes and gaps, and nothing
 * that is lost. */
static void test_refresh(void **state)
{
    open_backing();
    create(DEVICE, 1, 1);
    create(DEVICE, 0, 4);
    fill(0, 5, 0);
    fill(6, 7, 0);
    forget_calls();
    assert_int_equal(spw_pool_backing_refresh_access(&backing, at(0), at(8)), SPW_OK);
    assert_int_equal(vm.shared, 6);
    assert_int_equal(vm.calls[FAKE_ACCESS], 3);
    spw_pool_backing_mark_lost(&backing, 3, SPW_LOST_ACCESS);
    vm.shared = 0;
    assert_int_equal(spw_pool_backing_refresh_access(&backing, at(0), at(6)), SPW_OK);
    assert_int_equal(vm.shared, 4);
    vm.fail_call = FAKE_ACCESS;
    vm.fail_after = 0;
    vm.shared = 0;
    assert_true(spw_pool_backing_refresh_access(&backing, at(0), at(8)) < 0);
    assert_int_equal(vm.shared, 0);
    vm.fail_call = -1;
    spw_pool_backing_mark_lost(&backing, 3, SPW_LOST_NOTHING);
    close_backing();
}

/* ---- exported chunks ---- */

static void test_exported(void **state)
{
    uint64_t chunk, alias;

    open_backing();
    back(0, 3);
    assert_int_equal(spw_pool_stock_hold_exportable(&backing.stock, 1, &chunk, &alias), SPW_OK);
    assert_true(spw_pool_alias_drop(&backing.stock.aliases, chunk, 1));
    {
        uint64_t done;

        assert_int_equal(vm.seam.ops->unmap(&vm.seam, at(0), 2 * (uint64_t)GRANULE, GRANULE, &done),
                         SPW_OK);
        assert_int_equal(vm.seam.ops->map(&vm.seam, at(0), 2 * (uint64_t)GRANULE, chunk - 1),
                         SPW_OK);
    }
    spw_pool_backing_exchange(&backing, 0, DEVICE, 1, chunk);
    spw_pool_backing_mark_exported(&backing, 0);
    assert_int_equal(backing.broken, 2);
    assert_int_equal(backing.stock.tiers[DEVICE].held, 0);
    assert_int_equal(spw_pool_backing_spare(&backing), 2);
    assert_int_equal(steal(0, 3, 3), 1);
    vm.unmap_fails = true;
    assert_false(spw_pool_backing_release_exported(&backing, 0));
    assert_int_equal(backing.broken, 2);
    vm.unmap_fails = false;
    assert_true(spw_pool_backing_release_exported(&backing, 0));
    assert_int_equal(backing.broken, 0);
    assert_int_equal(missing(0, 3), 3);
    assert_int_equal(vm.chunks, 3);
    assert_int_equal(spw_pool_backing_spare(&backing), 3);
    close_backing();
}

/* ---- beginning ---- */

/* Without addresses nothing is left behind. */
static void test_no_addresses(void **state)
{
    fake_vm_init(&vm);
    assert_int_equal(spw_pool_stream_queues_init(&queues, &vm.seam), SPW_OK);
    vm.fail_call = FAKE_RESERVE;
    assert_int_equal(
        spw_pool_backing_init(&backing, &(struct spw_backing_config){.vm = &vm.seam,
                                                                     .queues = &queues,
                                                                     .counters = &counters,
                                                                     .arena_bytes = GRANULE,
                                                                     .alias_bytes = GRANULE,
                                                                     .granule_bytes = GRANULE}),
        SPW_E_NO_MEMORY);
    spw_pool_backing_fini(&backing, true);
    spw_pool_stream_queues_fini(&queues, true);
    fake_vm_fini(&vm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_too_few_of_the_host),
        cmocka_unit_test(test_where_the_host_is),
        cmocka_unit_test(test_fill_fails),
        cmocka_unit_test(test_fill_leaves_broken_granules),
        cmocka_unit_test(test_steal),
        cmocka_unit_test(test_steal_whole_granules),
        cmocka_unit_test(test_steal_around),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_steal_chunks),
        cmocka_unit_test(test_steal_fails),
        cmocka_unit_test(test_frees),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_end_with_lost_mappings),
        cmocka_unit_test(test_abandoned),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_exported),
        cmocka_unit_test(test_no_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
