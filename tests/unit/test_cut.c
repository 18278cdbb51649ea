#include "submit/cut.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Memory whose kind changes at these addresses, the last of which is beyond all tests. */
enum { BASE = 1000, BYTES = 4000 };
static unsigned char kinds[BYTES];

static uint64_t run(uint64_t address, uint64_t most)
{
    uint64_t bytes = 0;

    assert_true(address >= BASE && address + most <= BASE + BYTES && most > 0);
    while (bytes < most && kinds[address - BASE + bytes] == kinds[address - BASE]) {
        bytes++;
    }
    return bytes;
}

static void change_at(size_t offset)
{
    for (size_t i = offset; i < BYTES; i++) {
        kinds[i] ^= 1;
    }
}

static void all_one_kind(void)
{
    memset(kinds, 0, sizeof(kinds));
}

static struct spw_cut_box row(uint64_t to, uint64_t from, size_t bytes)
{
    return (struct spw_cut_box){.to = {.address = to},
                                .from = {.address = from},
                                .unit = 1,
                                .width = bytes,
                                .height = 1,
                                .depth = 1};
}

static void expect(struct spw_cut *cut, struct spw_cut_part part)
{
    assert_true(spw_submit_cut_next(cut, run));
    assert_memory_equal(&cut->part, &part, sizeof(part));
}

static void test_one_kind(void **state)
{
    const struct spw_cut_box box = row(BASE, 0, 100);
    struct spw_cut cut;

    all_one_kind();
    spw_submit_cut_begin(&cut, &box);
    expect(&cut, (struct spw_cut_part){.width = 100, .height = 1, .depth = 1});
    assert_true(spw_submit_cut_is_whole(&cut));
    assert_false(spw_submit_cut_next(&cut, run));
}

/* A boundary on either side begins a part; one at the end does not. */
static void test_both_sides(void **state)
{
    const struct spw_cut_box box = row(BASE, BASE + 500, 100);
    struct spw_cut cut;

    all_one_kind();
    change_at(40);
    change_at(100);
    change_at(570);
    spw_submit_cut_begin(&cut, &box);
    expect(&cut, (struct spw_cut_part){.width = 40, .height = 1, .depth = 1});
    assert_false(spw_submit_cut_is_whole(&cut));
    expect(&cut, (struct spw_cut_part){.x = 40, .width = 30, .height = 1, .depth = 1});
    expect(&cut, (struct spw_cut_part){.x = 70, .width = 30, .height = 1, .depth = 1});
    assert_false(spw_submit_cut_next(&cut, run));
}

/* An empty copy is given to the driver, which may have something to say. */
static void test_empty(void **state)
{
    const struct spw_cut_box box = row(BASE, BASE, 0);
    struct spw_cut cut;

    spw_submit_cut_begin(&cut, &box);
    expect(&cut, (struct spw_cut_part){.width = 0, .height = 1, .depth = 1});
    assert_true(spw_submit_cut_is_whole(&cut));
    assert_false(spw_submit_cut_next(&cut, run));
}

/* What is beyond the end of the address space is the driver's to refuse. */
static void test_overflow(void **state)
{
    struct spw_cut_box box = {.to = {.address = BASE, .pitch = 1},
                              .unit = 4,
                              .width = SIZE_MAX / 2,
                              .height = 1,
                              .depth = 1};
    struct spw_cut cut;

    spw_submit_cut_begin(&cut, &box);
    expect(&cut, (struct spw_cut_part){.width = SIZE_MAX / 2, .height = 1, .depth = 1});
    box = (struct spw_cut_box){.to = {.address = BASE, .pitch = SIZE_MAX / 4},
                               .unit = 1,
                               .width = 1,
                               .height = 1000,
                               .depth = 1};
    spw_submit_cut_begin(&cut, &box);
    expect(&cut, (struct spw_cut_part){.width = 1, .height = 1000, .depth = 1});
    box = row(UINT64_MAX - 10, BASE, 100);
    all_one_kind();
    spw_submit_cut_begin(&cut, &box);
    expect(&cut, (struct spw_cut_part){.width = 100, .height = 1, .depth = 1});
}

/* Whole rows as long as they fit, then the parts of the row that does not. */
static void test_rows(void **state)
{
    const struct spw_cut_box box = {.to = {.address = BASE, .pitch = 100},
                                    .from = {0},
                                    .unit = 4,
                                    .width = 10,
                                    .height = 5,
                                    .depth = 1};
    struct spw_cut cut;

    all_one_kind();
    change_at(220);
    spw_submit_cut_begin(&cut, &box);
    expect(&cut, (struct spw_cut_part){.width = 10, .height = 2, .depth = 1});
    expect(&cut, (struct spw_cut_part){.y = 2, .width = 5, .height = 1, .depth = 1});
    expect(&cut, (struct spw_cut_part){.x = 5, .y = 2, .width = 5, .height = 1, .depth = 1});
    expect(&cut, (struct spw_cut_part){.y = 3, .width = 10, .height = 2, .depth = 1});
    assert_false(spw_submit_cut_next(&cut, run));
}

/* A boundary between two rows cuts none of them. */
static void test_between_rows(void **state)
{
    const struct spw_cut_box box = {.to = {.address = BASE, .pitch = 100},
                                    .from = {0},
                                    .unit = 1,
                                    .width = 40,
                                    .height = 5,
                                    .depth = 1};
    struct spw_cut cut;

    all_one_kind();
    change_at(150);
    spw_submit_cut_begin(&cut, &box);
    expect(&cut, (struct spw_cut_part){.width = 40, .height = 2, .depth = 1});
    expect(&cut, (struct spw_cut_part){.y = 2, .width = 40, .height = 3, .depth = 1});
    assert_false(spw_submit_cut_next(&cut, run));
}

/* Every unit of random boxes is in exactly one part, and no part is of two kinds. */
static void test_random(void **state)
{
    static unsigned char seen[BYTES];
    unsigned seed = 7;

    for (int turn = 0; turn < 5000; turn++) {
        size_t unit = (size_t)1 << rand_r(&seed) % 3, width = 1 + (size_t)rand_r(&seed) % 12;
        size_t height = 1 + (size_t)rand_r(&seed) % 5, depth = 1 + (size_t)rand_r(&seed) % 4;
        size_t pitch = width * unit + unit * ((size_t)rand_r(&seed) % 3);
        size_t slice = height * pitch + unit * ((size_t)rand_r(&seed) % 20);
        struct spw_cut_box box = {.to = {BASE, pitch, slice},
                                  .from = {turn % 3 == 0 ? 0 : BASE + 2000, pitch, slice},
                                  .unit = unit,
                                  .width = width,
                                  .height = height,
                                  .depth = depth};
        size_t units = 0;
        struct spw_cut cut;

        all_one_kind();
        for (int i = 0; i < turn % 7; i++) {
            change_at((size_t)rand_r(&seed) % 1000 / unit * unit);
            change_at(2000 + (size_t)rand_r(&seed) % 1000 / unit * unit);
        }
        memset(seen, 0, sizeof(seen));
        spw_submit_cut_begin(&cut, &box);
        while (spw_submit_cut_next(&cut, run)) {
            const struct spw_cut_part *at = &cut.part;
            size_t first = at->z * slice + at->y * pitch + at->x * unit;

            for (size_t z = 0; z < at->depth; z++) {
                for (size_t y = 0; y < at->height; y++) {
                    for (size_t x = 0; x < at->width * unit; x++) {
                        size_t byte = first + z * slice + y * pitch + x;

                        assert_false(seen[byte]++);
                        assert_int_equal(kinds[byte], kinds[first]);
                        assert_true(box.from.address == 0 ||
                                    kinds[2000 + byte] == kinds[2000 + first]);
                    }
                    units += at->width;
                }
            }
        }
        assert_int_equal(units, width * height * depth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_kind), cmocka_unit_test(test_both_sides),
        cmocka_unit_test(test_empty),    cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_between_rows),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
