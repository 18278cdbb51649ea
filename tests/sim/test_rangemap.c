/* The range map and the heap of addresses against plain models. */
#include "sim/driver/core/heap.h"
#include "sim/driver/core/rangemap.h"

#include <string.h>

#include "check.h"

#define SLOTS 512 /* the model: address i * 16 holds a range of sizes[i] bytes, or none */

static struct sim_range ranges[SLOTS];
static bool present[SLOTS];
static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static const struct sim_range *model_from(uint64_t address)
{
    for (int i = 0; i < SLOTS; i++) {
        if (present[i] && sim_range_end(&ranges[i]) > address) {
            return &ranges[i];
        }
    }
    return NULL;
}

static const struct sim_range *model_fit(uint64_t from, uint64_t size)
{
    for (int i = 0; i < SLOTS; i++) {
        if (present[i] && ranges[i].start >= from && ranges[i].size >= size) {
            return &ranges[i];
        }
    }
    return NULL;
}

static void check_against_model(const struct sim_rangemap *map)
{
    uint64_t address = draw(SLOTS * 16);
    uint64_t size = 1 + draw(16);
    const struct sim_range *expected = model_from(address);

    assert_ptr_equal(sim_rangemap_from(map, address), expected);
    if (expected != NULL && expected->start > address) {
        expected = NULL;
    }
    assert_ptr_equal(sim_rangemap_find(map, address), expected);
    assert_ptr_equal(sim_rangemap_fit(map, address, size), model_fit(address, size));
}

static void test_random_ranges(void **state)
{
    struct sim_rangemap map = {0};
    size_t count = 0;

    for (int step = 0; step < 200000; step++) {
        uint32_t i = draw(SLOTS);

        if (present[i]) {
            sim_rangemap_remove(&map, &ranges[i]);
            count--;
        } else {
            ranges[i].start = i * 16;
            ranges[i].size = 1 + draw(16);
            sim_rangemap_insert(&map, &ranges[i]);
            count++;
        }
        present[i] = !present[i];
        assert_int_equal(map.count, count);
        check_against_model(&map);
    }
}

static void test_order(void **state)
{
    const struct sim_range *range;
    struct sim_rangemap map = {0};
    uint64_t last = 0;
    size_t count = 0;

    for (int i = 0; i < SLOTS; i++) {
        int slot = (i * 197) % SLOTS; /* every slot once, out of order */

        ranges[slot].start = 100 + (uint64_t)slot * 16;
        ranges[slot].size = 16;
        sim_rangemap_insert(&map, &ranges[slot]);
    }
    for (range = sim_rangemap_from(&map, 0); range != NULL;
         range = sim_rangemap_next(&map, range)) {
        assert_true(range->start > last);
        last = range->start;
        count++;
    }
    assert_int_equal(count, SLOTS);
}

static int depth(const struct sim_range *tree)
{
    int left, right;

    if (tree == NULL) {
        return 0;
    }
    left = depth(tree->left);
    right = depth(tree->right);
    return 1 + (left > right ? left : right);
}

static void test_stays_balanced(void **state)
{
    const size_t count = 100000;
    struct sim_range *many = calloc(count, sizeof(*many));
    struct sim_rangemap map = {0};

    assert_non_null(many);
    for (size_t i = 0; i < count; i++) {
        many[i].start = i * 2 * MIB;
        many[i].size = 2 * MIB;
        sim_rangemap_insert(&map, &many[i]);
    }
    assert_true(depth(map.root) < 64); /* 17 would be perfect, 100000 a list */
    free(many);
}

/* Units of the heap's model: who has them. */
#define UNITS    256
#define SEGMENTS 2

static void test_heap_never_hands_out_twice(void **state)
{
    static bool taken[UNITS];
    struct {
        uint64_t start, size;
    } pieces[UNITS];
    struct sim_heap heap = {0};
    size_t live = 0;

    for (uint64_t i = 0; i < SEGMENTS; i++) { /* neighbours, which must not merge */
        assert_non_null(sim_heap_add(&heap, 4096 + i * UNITS / SEGMENTS, UNITS / SEGMENTS, NULL));
    }
    for (int step = 0; step < 100000; step++) {
        if (live > 0 && draw(2) == 0) {
            uint32_t which = draw((uint32_t)live);

            memset(&taken[pieces[which].start - 4096], 0, pieces[which].size);
            sim_heap_give(&heap, pieces[which].start, pieces[which].size);
            pieces[which] = pieces[--live];
        } else {
            uint64_t size = 1 + draw(20), start = sim_heap_take(&heap, size);

            if (start == 0) {
                continue;
            }
            for (uint64_t i = 0; i < size; i++) {
                assert_false(taken[start - 4096 + i]);
                taken[start - 4096 + i] = true;
            }
            assert_true((start - 4096) / (UNITS / SEGMENTS) ==
                        (start + size - 1 - 4096) / (UNITS / SEGMENTS));
            pieces[live].start = start;
            pieces[live++].size = size;
        }
    }
    while (live > 0) {
        live--;
        sim_heap_give(&heap, pieces[live].start, pieces[live].size);
    }
    assert_int_equal(heap.free.count, SEGMENTS); /* all merged again */
    for (uint64_t i = 0; i < SEGMENTS; i++) {
        struct sim_range *segment = sim_rangemap_from(&heap.segments, 0);

        assert_int_equal(((struct sim_segment *)segment)->used, 0);
        sim_heap_remove(&heap, (struct sim_segment *)segment);
    }
    assert_int_equal(heap.free.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_ranges),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_stays_balanced),
        cmocka_unit_test(test_heap_never_hands_out_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
