/* Which devices have no memory of their own: by facts as real machines have them. */
#include "driver/one_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define GIB (UINT64_C(1) << 30)

static bool is_one(bool integrated, bool page_tables, bool node, uint64_t device, uint64_t host)
{
    return spw_driver_is_one_memory(
        &(struct spw_one_memory_facts){integrated, page_tables, node, device * GIB, host * GIB});
}

/* GB10 and Thor have the page tables of the host, Orin does not. */
static void test_integrated(void **state)
{
    assert_true(is_one(true, true, false, 121, 119));
    assert_true(is_one(true, false, false, 61, 61));
    assert_true(is_one(true, false, false, 61, 0)); /* /proc is hidden */
}

static void test_cards(void **state)
{
    assert_false(is_one(false, false, false, 80, 80));
    assert_false(is_one(false, false, false, 80, 0));
}

/* GH200 and GB200, with their memory as a NUMA node (it counts as the machine's) and without. */
static void test_grace(void **state)
{
    assert_false(is_one(false, true, true, 94, 574));
    assert_false(is_one(false, true, true, 94, 94));
    assert_false(is_one(false, true, false, 94, 480));
    assert_false(is_one(false, true, false, 142, 120));
    assert_false(is_one(false, true, false, 184, 960));
}

/* A driver that does not say that its device is integrated. */
static void test_by_size(void **state)
{
    assert_true(is_one(false, true, false, 121, 119));
    assert_true(is_one(false, true, false, 90, 100));
    assert_true(is_one(false, true, false, 110, 100));
    assert_false(is_one(false, true, false, 89, 100));
    assert_false(is_one(false, true, false, 111, 100));
    assert_false(is_one(false, true, false, 121, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integrated),
        cmocka_unit_test(test_cards),
        cmocka_unit_test(test_grace),
        cmocka_unit_test(test_by_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
