/* Packing: random blocks on a circle of time never overlap, and orders that are known to be good
 * are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pool/plan/packing.h"

enum { UNIT = 512, GRANULE = 2 << 20 };

#define BASE UINT64_C(0x100000000)

static struct spw_packing packing_of(struct spw_packing_item *items, size_t count, uint32_t period)
{
    return (struct spw_packing){.items = items,
                                .count = count,
                                .period = period,
                                .base = BASE,
                                .end = BASE + (UINT64_C(1) << 40),
                                .granule_bytes = GRANULE};
}

static bool lives_at(const struct spw_packing *packing, const struct spw_packing_item *item,
                     uint32_t point)
{
    return item->fixed || (point + packing->period - item->begin) % packing->period < item->length;
}

/* Compares all pairs at all times. */
static void expect_no_overlap(const struct spw_packing *packing)
{
    for (size_t i = 0; i < packing->count; i++) {
        const struct spw_packing_item *a = &packing->items[i];

        assert_true(a->address >= packing->base && a->address + a->bytes <= packing->end);
        for (size_t k = i + 1; k < packing->count; k++) {
            const struct spw_packing_item *b = &packing->items[k];
            bool apart = a->address + a->bytes <= b->address || b->address + b->bytes <= a->address;

            for (uint32_t point = 0; point < packing->period && !apart; point++) {
                assert_false(lives_at(packing, a, point) && lives_at(packing, b, point));
            }
        }
    }
}

static void test_random(void **state)
{
    for (unsigned seed = 1; seed <= 60; seed++) {
        struct spw_packing_item items[80];
        struct spw_packing packing = packing_of(items, 80, 50 + seed);
        uint64_t at = BASE, bytes;

        srand(seed);
        print_message(seed == 1 ? "seeds from 1\n" : "");
        for (size_t i = 0; i < packing.count; i++) {
            items[i] = (struct spw_packing_item){.bytes = (uint64_t)(rand() % 9000 + 1) * UNIT,
                                                 .begin = (uint32_t)rand() % packing.period,
                                                 .length = (uint32_t)rand() % packing.period + 1};
            if (i % 13 == 0) { /* one that stays, with a gap before it */
                at += (uint64_t)(rand() % 3000) * UNIT;
                items[i].fixed = true;
                items[i].address = at;
                at += items[i].bytes;
            }
        }
        assert_true(spw_pool_packing_pack(&packing, &bytes));
        expect_no_overlap(&packing);
        assert_true(bytes % GRANULE == 0 && bytes > 0);
    }
}

/* What is fixed stays. Others go behind it, or where the range ends there, into the gap before it.
 */
static void test_fixed(void **state)
{
    struct spw_packing_item items[] = {
        {.bytes = GRANULE, .address = BASE + 3 * GRANULE, .fixed = true},
        {.bytes = 3 * GRANULE, .begin = 0, .length = 5},
        {.bytes = 2 * GRANULE, .begin = 5, .length = 5},
    };
    struct spw_packing packing = packing_of(items, 3, 10);
    uint64_t bytes;

    for (int behind = 1; behind >= 0; behind--) {
        uint64_t expected = behind != 0 ? BASE + 4 * GRANULE : BASE;

        assert_true(spw_pool_packing_pack(&packing, &bytes));
        assert_int_equal(items[0].address, BASE + 3 * GRANULE);
        assert_int_equal(items[1].address, expected);
        assert_int_equal(items[2].address, expected);
        assert_int_equal(bytes, 4 * GRANULE);
        packing.end = BASE + 6 * GRANULE;
    }
}

/* A gap that fits one block exactly is left empty where the block shares its memory with another
 * one behind all that is fixed, which is too large for the gap. */
static void test_gaps_between_fixed(void **state)
{
    struct spw_packing_item items[] = {
        {.bytes = GRANULE, .address = BASE + 2 * GRANULE, .fixed = true},
        {.bytes = 2 * GRANULE, .begin = 0, .length = 5},
        {.bytes = 3 * GRANULE, .begin = 5, .length = 5},
    };
    struct spw_packing packing = packing_of(items, 3, 10);
    uint64_t bytes;

    assert_true(spw_pool_packing_pack(&packing, &bytes));
    expect_no_overlap(&packing);
    assert_int_equal(bytes, 4 * GRANULE);
}

/* The rest of a granule is used that a fixed block does not fill, also between fixed blocks. */
static void test_rest_of_a_granule(void **state)
{
    struct spw_packing_item items[] = {
        {.bytes = GRANULE / 2, .address = BASE, .fixed = true},
        {.bytes = GRANULE, .address = BASE + GRANULE, .fixed = true},
        {.bytes = GRANULE / 2, .begin = 0, .length = 5},
    };
    struct spw_packing packing = packing_of(items, 3, 10);
    uint64_t bytes;

    assert_true(spw_pool_packing_pack(&packing, &bytes));
    assert_int_equal(items[2].address, BASE + GRANULE / 2);
    assert_int_equal(bytes, 2 * GRANULE);
}

/* Two blocks whose lifetimes meet only across the end of the circle. */
static void test_round_the_circle(void **state)
{
    struct spw_packing_item items[] = {
        {.bytes = GRANULE, .begin = 90, .length = 20},
        {.bytes = GRANULE, .begin = 5, .length = 10},
        {.bytes = GRANULE, .begin = 15, .length = 75},
    };
    struct spw_packing packing = packing_of(items, 3, 100);
    uint64_t bytes;

    assert_true(spw_pool_packing_pack(&packing, &bytes));
    expect_no_overlap(&packing);
    assert_int_not_equal(items[0].address, items[1].address);
    assert_int_equal(bytes, 2 * GRANULE);
}

/* Blocks of which only the order by length finds the best packing. */
static void test_long_ones_first(void **state)
{
    static const uint32_t rows[][3] = {{5, 9, 3},  {6, 7, 1}, {1, 9, 2}, {3, 7, 6},
                                       {2, 11, 5}, {1, 6, 3}, {5, 11, 9}};
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    struct spw_packing_item items[COUNT];
    struct spw_packing packing = packing_of(items, COUNT, 12);
    uint64_t bytes;

    for (size_t i = 0; i < COUNT; i++) {
        items[i] = (struct spw_packing_item){
            .bytes = (uint64_t)rows[i][0] * GRANULE, .begin = rows[i][1], .length = rows[i][2]};
    }
    assert_true(spw_pool_packing_pack(&packing, &bytes));
    expect_no_overlap(&packing);
    assert_int_equal(bytes, 15u * GRANULE);
}

/* Trying all orders never gives a worse packing than stopping at the first. */
static void test_good_enough_stops(void **state)
{
    struct spw_packing_item items[64];
    struct spw_packing packing = packing_of(items, 64, 64);
    uint64_t exact, roomy;

    for (size_t i = 0; i < 64; i++) {
        items[i] = (struct spw_packing_item){.bytes = (i * 37 % 11 + 1) * (GRANULE / 4),
                                             .begin = (uint32_t)i,
                                             .length = (uint32_t)(i * 29 % 23 + 1)};
    }
    packing.enough_bytes = 0;
    assert_true(spw_pool_packing_pack(&packing, &exact));
    expect_no_overlap(&packing);
    packing.enough_bytes = UINT64_MAX / 2;
    assert_true(spw_pool_packing_pack(&packing, &roomy));
    expect_no_overlap(&packing);
    assert_true(exact <= roomy);
}

static void test_no_room(void **state)
{
    struct spw_packing_item items[] = {
        {.bytes = 2 * GRANULE, .begin = 0, .length = 2},
        {.bytes = GRANULE, .begin = 1, .length = 2},
    };
    struct spw_packing packing = packing_of(items, 2, 4);
    uint64_t bytes;

    packing.end = BASE + 3 * GRANULE;
    assert_true(spw_pool_packing_pack(&packing, &bytes));
    packing.end = BASE + 3 * GRANULE - UNIT;
    assert_false(spw_pool_packing_pack(&packing, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_gaps_between_fixed),
        cmocka_unit_test(test_rest_of_a_granule),
        cmocka_unit_test(test_round_the_circle),
        cmocka_unit_test(test_long_ones_first),
        cmocka_unit_test(test_good_enough_stops),
        cmocka_unit_test(test_no_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
