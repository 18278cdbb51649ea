/* The rows of PyTorch's versions (torch/row.c). */
#include "torch/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "torch/library.h"

static void check_slots(const struct spw_torch_row *row)
{
    bool taken[SPW_TORCH_TABLE_MOST] = {false};

    for (int i = 0; i < SPW_TORCH_FUNCTIONS; i++) {
        int slot = row->slots[i];

        if (slot < 0) {
            assert_true(i == SPW_TORCH_ENABLE || i == SPW_TORCH_GET_BASE_ALLOCATION ||
                        i == SPW_TORCH_GET_MEMORY_FRACTION || i == SPW_TORCH_SHARE_IPC_HANDLE);
            continue;
        }
        assert_in_range(slot, 2, row->functions - 1); /* the first two are destructors */
        assert_false(taken[slot]);
        taken[slot] = true;
    }
}

static void check_offset(size_t offset, size_t bytes)
{
    assert_in_range(offset, sizeof(struct spw_torch_figures), SPW_TORCH_FIGURES_MOST - bytes);
    assert_int_equal(offset % sizeof(int64_t), 0);
}

static void test_known_versions(void **state)
{
    for (int minor = 4; minor <= 15; minor++) {
        const struct spw_torch_row *row = spw_torch_row_of(2, minor);

        assert_non_null(row);
        assert_int_equal(row->major, 2);
        assert_int_equal(row->minor, minor);
        assert_in_range(row->functions, SPW_TORCH_FUNCTIONS, SPW_TORCH_TABLE_MOST);
        check_slots(row);
        check_offset(row->active_bytes, SPW_TORCH_KINDS * sizeof(struct spw_torch_stat));
        check_offset(row->requested_bytes, SPW_TORCH_KINDS * sizeof(struct spw_torch_stat));
        check_offset(row->device_allocs, sizeof(int64_t));
        check_offset(row->device_frees, sizeof(int64_t));
        if (row->private_pools != 0) {
            check_offset(row->private_pools, sizeof(struct spw_torch_table));
        }
    }
}

static void test_unknown_versions(void **state)
{
    static const int versions[][2] = {{2, 3}, {2, 99}, {1, 11}, {9, 9}, {0, 0}};

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        assert_null(spw_torch_row_of(versions[i][0], versions[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_versions),
                                       cmocka_unit_test(test_unknown_versions)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
