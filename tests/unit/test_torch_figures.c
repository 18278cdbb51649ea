/* The figures of PyTorch's allocator with the pool inside (torch/figures.c). */
#include "torch/figures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "device/state.h"

enum { DEVICE = 1, MIB = 1 << 20, KIB = 1 << 10 };

struct spw_process spw_process;
struct spw_devices spw_devices;

static struct spw_counters counters;
static struct spw_driver driver;
static _Atomic uint64_t calls[SPW_CALL_COUNT];

/* The native part's answer. */
static _Alignas(8) char figures[SPW_TORCH_FIGURES_MOST];
static const struct spw_torch_row *row;

struct spw_driver *spw_process_load(bool load)
{
    return &driver;
}

static struct spw_torch_stat *stats_at(size_t offset)
{
    return (struct spw_torch_stat *)(void *)(figures + offset);
}

#define STAT(name) stats_at(offsetof(struct spw_torch_figures, name))

static void set_native(int64_t blocks, int64_t bytes, int64_t reserved)
{
    memset(figures, 0, sizeof(figures));
    STAT(allocation)[SPW_TORCH_ALL].current = blocks;
    STAT(active)[SPW_TORCH_ALL].current = blocks;
    STAT(allocated_bytes)[SPW_TORCH_ALL].current = bytes;
    STAT(reserved_bytes)[SPW_TORCH_ALL].current = reserved;
    stats_at(row->active_bytes)[SPW_TORCH_ALL].current = bytes;
    stats_at(row->requested_bytes)[SPW_TORCH_ALL].current = bytes;
}

static int setup(void **state)
{
    row = spw_torch_row_of(2, 11);
    spw_devices.count = DEVICE + 1;
    spw_device_at(DEVICE)->counters = &counters;
    driver.calls[DEVICE] = calls;
    set_native(0, 0, 0);
    return 0;
}

static void check(const struct spw_torch_stat *stat, int64_t current, int64_t peak,
                  int64_t allocated, int64_t freed)
{
    assert_int_equal(stat->current, current);
    assert_int_equal(stat->peak, peak);
    assert_int_equal(stat->allocated, allocated);
    assert_int_equal(stat->freed, freed);
}

/* Small and large tensors are told apart. Freed memory stays active while another stream uses it.
 */
static void test_tensors(void **state)
{
    spw_torch_figures_new(DEVICE, KIB, 1000);
    spw_torch_figures_new(DEVICE, 4 * MIB, 4 * MIB - 1);
    spw_torch_figures_freed(DEVICE, 4 * MIB, 4 * MIB - 1);
    spw_torch_figures_add(row, DEVICE, figures);
    check(&STAT(allocation)[SPW_TORCH_ALL], 1, 2, 2, 1);
    check(&STAT(allocation)[SPW_TORCH_SMALL], 1, 1, 1, 0);
    check(&STAT(allocation)[SPW_TORCH_LARGE], 0, 1, 1, 1);
    check(&STAT(active)[SPW_TORCH_LARGE], 1, 1, 1, 0);
    check(&STAT(allocated_bytes)[SPW_TORCH_ALL], KIB, 4 * MIB + KIB, 4 * MIB + KIB, 4 * MIB);
    check(&stats_at(row->requested_bytes)[SPW_TORCH_ALL], 1000, 4 * MIB + 999, 4 * MIB + 999,
          4 * MIB - 1);
    check(&stats_at(row->active_bytes)[SPW_TORCH_ALL], 4 * MIB + KIB, 4 * MIB + KIB, 4 * MIB + KIB,
          0);
    spw_torch_figures_inactive(DEVICE, 4 * MIB);
    set_native(0, 0, 0);
    spw_torch_figures_add(row, DEVICE, figures);
    check(&stats_at(row->active_bytes)[SPW_TORCH_ALL], KIB, 4 * MIB + KIB, 4 * MIB + KIB, 4 * MIB);
    assert_int_equal(spw_torch_figures_allocated(DEVICE), KIB);
}

/* The peak is that of both parts together. */
static void test_peak_of_both(void **state)
{
    spw_torch_figures_reset_peaks(DEVICE);
    set_native(1, 8 * MIB, 20 * MIB);
    spw_torch_figures_native(row, DEVICE, figures);
    assert_int_equal(spw_torch_figures_allocated(DEVICE), 8 * MIB + KIB);
    assert_int_equal(spw_torch_figures_idle(DEVICE), 12 * MIB);
    set_native(0, 0, 20 * MIB);
    spw_torch_figures_add(row, DEVICE, figures);
    check(&STAT(allocated_bytes)[SPW_TORCH_ALL], KIB, 8 * MIB + KIB, 4 * MIB + KIB, 4 * MIB);
    assert_int_equal(STAT(allocation)[SPW_TORCH_ALL].peak, 2);
    spw_torch_figures_reset_peaks(DEVICE);
    set_native(0, 0, 0);
    spw_torch_figures_add(row, DEVICE, figures);
    assert_int_equal(STAT(allocated_bytes)[SPW_TORCH_ALL].peak, KIB);
}

/* All memory of the pool is reserved, the native part's segments included. */
static void test_reserved(void **state)
{
    spw_counter_set(&counters.committed_bytes, 40 * MIB);
    spw_counter_set(&counters.host_used_bytes, 2 * MIB);
    spw_counter_set(&counters.reserved_peak_bytes, 64 * MIB);
    set_native(0, 0, 20 * MIB);
    spw_torch_figures_add(row, DEVICE, figures);
    assert_int_equal(STAT(reserved_bytes)[SPW_TORCH_ALL].current, 42 * MIB);
    assert_int_equal(STAT(reserved_bytes)[SPW_TORCH_ALL].peak, 64 * MIB);
    assert_int_equal(spw_torch_figures_reserved(DEVICE), 42 * MIB);
}

/* Chunks are segments, and the driver's calls for them are PyTorch's. */
static void test_chunks(void **state)
{
    atomic_store(&calls[SPW_CALL_cuMemCreate], 5);
    atomic_store(&calls[SPW_CALL_cuMemRelease], 2);
    set_native(0, 0, 0);
    spw_torch_figures_add(row, DEVICE, figures);
    check(&STAT(segment)[SPW_TORCH_ALL], 3, 3, 5, 2);
    assert_int_equal(*(int64_t *)(void *)(figures + row->device_allocs), 5);
    spw_torch_figures_reset_accumulated(DEVICE);
    set_native(0, 0, 0);
    spw_torch_figures_add(row, DEVICE, figures);
    check(&STAT(segment)[SPW_TORCH_ALL], 3, 3, 0, 0);
    assert_int_equal(*(int64_t *)(void *)(figures + row->device_frees), 0);
    assert_int_equal(STAT(allocation)[SPW_TORCH_ALL].allocated, 0);
}

/* A device without a pool has the native part's figures only. */
static void test_other_device(void **state)
{
    set_native(7, 7, 7);
    spw_torch_figures_add(row, DEVICE + 1, figures);
    assert_int_equal(STAT(allocation)[SPW_TORCH_ALL].current, 7);
    assert_int_equal(STAT(segment)[SPW_TORCH_ALL].current, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),      cmocka_unit_test(test_peak_of_both),
        cmocka_unit_test(test_reserved),     cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_other_device),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
