#include "sim/driver/exec/roofline.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>

#include <cmocka.h>

/* Returns a share of a number in percent, rounded. */
static int percent(double of, double whole)
{
    return (int)(100 * of / whole + 0.5);
}

/* Data sheets: TFLOP/s without sparsity, sums in float32. The clocks of the profiles are up to 8 %
 * higher than those of some data sheets. `sustained`: the part in rates.def, in thousandths. */
static void test_data_sheets(void **state)
{
    static const struct {
        const char *id;
        enum spw_gpu_type type;
        double tflops;
        double sustained;
    } rows[] = {
        {"v100-32g", SPW_GPU_BITS16, 125, 0.8},    {"t4-16g", SPW_GPU_BITS16, 65, 0.8},
        {"a100-80g", SPW_GPU_BITS16, 312, 0.869},  {"a100-80g", SPW_GPU_TF32, 156, 0.869},
        {"a100-80g", SPW_GPU_F32, 19.5, 0.869},    {"a40-48g", SPW_GPU_BITS16, 149.7, 0.8},
        {"rtx3090-24g", SPW_GPU_BITS16, 71, 1},    {"rtx3090-24g", SPW_GPU_F32, 35.6, 1},
        {"l40s-48g", SPW_GPU_BITS16, 362, 0.8},    {"l4-24g", SPW_GPU_BITS16, 121, 0.8},
        {"rtx4090-24g", SPW_GPU_BITS16, 165.2, 1}, {"h100-80g", SPW_GPU_BITS16, 989, 0.742},
        {"h100-80g", SPW_GPU_BITS8, 1979, 0.742},  {"b200-192g", SPW_GPU_BITS16, 2250, 0.733},
        {"rtx5090-32g", SPW_GPU_BITS16, 209.5, 1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct spw_gpu_profile *profile = spw_gpu_profile_find(rows[i].id);
        int share =
            percent(spw_gpu_rate(profile, rows[i].type) / rows[i].sustained / 1000, rows[i].tflops);

        assert_in_range(share, 97, 108);
    }
}

/* Every profile has rates. A larger type is not faster. */
static void test_all_profiles(void **state)
{
    const struct spw_gpu_profile *profile;

    for (size_t i = 0; (profile = spw_gpu_profile_at(i)) != NULL; i++) {
        assert_true(spw_gpu_memory_rate(profile) > 50);
        for (int type = SPW_GPU_F64; type < SPW_GPU_BITS8; type++) {
            assert_true(spw_gpu_rate(profile, (enum spw_gpu_type)type) > 0);
            assert_true(spw_gpu_rate(profile, (enum spw_gpu_type)(type + 1)) >=
                        spw_gpu_rate(profile, (enum spw_gpu_type)type));
        }
    }
}

/* A byte to the card and a byte from it take the time of the slower direction. */
static void test_links(void **state)
{
    const struct spw_gpu_profile *h100 = spw_gpu_profile_find("h100-80g");
    const struct spw_gpu_profile *gh200 = spw_gpu_profile_find("gh200-96g");
    const struct spw_gpu_profile *gb300 = spw_gpu_profile_find("gb300-288g");
    struct spw_gpu_link link = spw_gpu_link_reached(gh200);

    assert_int_equal(percent(spw_gpu_link_reached(h100).in, 55), 100);
    assert_int_equal(percent(spw_gpu_link_most(h100).out, 63), 100);
    assert_int_equal(percent(spw_gpu_link_ns(link, 415000, 0), 1000), 100);
    assert_int_equal(percent(spw_gpu_link_ns(link, 0, 415000), 2441), 100);
    assert_int_equal(percent(spw_gpu_link_ns(link, 415000, 170000), 1000), 100);
    assert_int_equal(percent(spw_gpu_link_ns(link, 415000, 340000), 2000), 100);
    assert_true(spw_gpu_link_most(gh200).in == link.in);
    assert_int_equal(percent(spw_gpu_link_most(gb300).in, 210), 100);
    assert_int_equal(percent(spw_gpu_link_reached(gb300).out, 210), 100);
}

static double time_of(const struct sim_demand *demand, const struct spw_gpu_profile *card)
{
    return sim_roofline_of(demand, card).ns;
}

static void test_limits(void **state)
{
    const struct spw_gpu_profile *a100 = spw_gpu_profile_find("a100-80g");
    struct sim_demand demand = {.work = SIM_WORK_PRODUCT, .type = SPW_GPU_BITS16};
    double least = time_of(&demand, a100), compute, memory;

    assert_in_range((int)least, 1000, 10000);
    demand.operations = 1e13F; /* 36.9 ms at 271 TFLOP/s */
    compute = time_of(&demand, a100);
    assert_int_equal(percent(compute - least, 36.9e6), 100);
    demand.bytes = 1e9F; /* hidden */
    assert_true(time_of(&demand, a100) == compute);
    demand.besides = 1e9F; /* not hidden */
    assert_true(time_of(&demand, a100) > compute + 400000);
    demand = (struct sim_demand){.work = SIM_WORK_ELEMENTS, .bytes = 1e9F};
    memory = time_of(&demand, a100);
    assert_in_range((int)memory, 490000, 900000); /* 2039 GB/s */
    demand.work = SIM_WORK_STRIDED;
    assert_true(time_of(&demand, a100) > memory);
    demand.work = SIM_WORK_MORE;
    assert_true(time_of(&demand, a100) == 0);
}

/* A small product reaches a small part of the rate. */
static void test_sizes(void **state)
{
    const struct spw_gpu_profile *h100 = spw_gpu_profile_find("h100-80g");
    double last = 0;

    for (double size = 128; size <= 16384; size *= 2) {
        struct sim_demand demand = {
            .work = SIM_WORK_PRODUCT,
            .type = SPW_GPU_BITS16,
            .operations = (float)(2 * size * size * size),
            .bytes = (float)(6 * size * size),
        };
        double rate = (double)demand.operations / time_of(&demand, h100);

        assert_true(rate > last);
        last = rate;
    }
    assert_in_range(percent(last / 1000, 794.5), 95, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_sheets), cmocka_unit_test(test_all_profiles),
        cmocka_unit_test(test_links),       cmocka_unit_test(test_limits),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
