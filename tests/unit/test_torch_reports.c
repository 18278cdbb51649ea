/* Reports of tensors to the simulated GPU (torch/reports.c). */
#include "torch/reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "process/process.h"
#include "system/lock.h"
#include "torch/state.h"

struct spw_process spw_process;

typedef void take_function(unsigned long long address, unsigned long long bytes);

static struct spw_driver driver;
static const _Atomic uint64_t *count;
static void (*hand_over)(take_function *take);
static int taken;
static unsigned long long last_address, last_bytes;

struct spw_driver *spw_process_load(bool load)
{
    return &driver;
}

static void take(unsigned long long address, unsigned long long bytes)
{
    taken++;
    last_address = address;
    last_bytes = bytes;
}

/* The simulator takes what there is when it gets to know the source. */
static void source(const _Atomic uint64_t *new_count, void (*new_hand_over)(take_function *take))
{
    count = new_count;
    hand_over = new_hand_over;
    hand_over(take);
}

static void report(uint64_t address, uint64_t bytes)
{
    spw_lock(&spw_locks.tensors);
    spw_torch_reports_add(address, bytes);
    spw_unlock(&spw_locks.tensors);
}

static void test_real_gpu(void **state)
{
    spw_torch_reports_begin();
    report(4096, 512);
    spw_torch_reports_limit();
    assert_int_equal(spw_torch.reports.count, 0);
}

static void test_order(void **state)
{
    driver.simulated_blocks = source;
    spw_torch_reports_begin();
    report(4096, 512);
    report(8192, 1024);
    report(4096, 0);
    assert_int_equal(*count, 3);
    hand_over(take);
    assert_int_equal(*count, 0);
    assert_int_equal(taken, 3);
    assert_int_equal(last_address, 4096);
    assert_int_equal(last_bytes, 0);
}

/* A tensor that comes and goes between others needs no report, unless it is the first one. The end
 * of a tensor that the simulator knows is always reported. */
static void test_short_life(void **state)
{
    report(8192, 0);
    report(4096, 512);
    report(4096, 0);
    assert_int_equal(*count, 1);
    report(4096, 0);
    report(4096, 0);
    assert_int_equal(*count, 3);
    hand_over(take);
    report(4096, 512);
    report(4096, 0);
    assert_int_equal(*count, 2);
    hand_over(take);
}

static void test_many(void **state)
{
    taken = 0;
    for (uint64_t i = 1; i <= 1500; i++) {
        report(i * 512, 512);
        spw_torch_reports_limit();
    }
    assert_int_equal(taken, 1024);
    assert_int_equal(*count, 1500 - 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_gpu),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_short_life),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
