/* What a card needs: NCCL's buffers beside published measurements, and the sum of the terms. */
#include "cli/verdict/need.h"

#include "gpu/communicator.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

/* Estimate and bound of a communicator that has made some connections. */
struct estimate {
    uint32_t mib, most_mib;
};

static struct estimate estimate(const char *id, int ranks, bool ring, bool tree, int peers)
{
    const struct spw_gpu_profile *profile = spw_gpu_profile_find(id);
    int counts[SPW_GPU_CONNECTIONS] = {[SPW_GPU_COMMUNICATOR] = 1,
                                       [SPW_GPU_RING] = ring,
                                       [SPW_GPU_TREE] = tree,
                                       [SPW_GPU_PEER] = peers};
    struct estimate sum = {0};

    assert_non_null(profile);
    for (int i = 0; i < SPW_GPU_CONNECTIONS; i++) {
        struct spw_gpu_connection_need need = spw_gpu_connection_need(profile, i, ranks);

        sum.mib += need.mib * (uint32_t)counts[i];
        sum.most_mib += need.most_mib * (uint32_t)counts[i];
    }
    return sum;
}

static void assert_near(struct estimate found, double measured_mib, double percent)
{
    assert_true(found.mib >= measured_mib * (1 - percent / 100));
    assert_true(found.mib <= measured_mib * (1 + percent / 100));
    assert_true(found.most_mib >= measured_mib);
}

/* The measurements are named in docs/guide/simulator.md. */
static void test_published_measurements(void **state)
{
    double context_mib = spw_gpu_profile_overhead(spw_gpu_profile_find("h100-80g")).mib;

    assert_near(estimate("a100-80g", 2, true, true, 0), 544, 13);
    assert_near(estimate("a100-80g", 4, true, true, 0), 688, 13);
    assert_near(estimate("h100-80g", 8, true, false, 0), 1.06e9 / MIB - context_mib, 8);
    assert_near(estimate("h100-80g", 8, true, false, 7), 4.34e9 / MIB - context_mib, 2);
    assert_true(estimate("b300-288g", 1, false, false, 0).most_mib >= 512);
}

static void test_of_a_communicator(void **state)
{
    struct estimate alone = estimate("h100-80g", 1, true, true, 0);
    struct estimate pair = estimate("h100-80g", 2, true, true, 0);
    struct estimate more = estimate("h100-80g", 3, true, true, 0);
    struct estimate slow = estimate("rtx4090-24g", 2, true, true, 0);

    assert_int_equal(alone.mib, 192);
    assert_int_equal(pair.mib, alone.mib + 288);
    assert_int_equal(more.mib, pair.mib + 288);
    assert_true(slow.mib < pair.mib / 4);
    assert_true(alone.most_mib > alone.mib);
    assert_true(spw_gpu_channels_are_published(spw_gpu_profile_find("h100-80g")));
    assert_false(spw_gpu_channels_are_published(spw_gpu_profile_find("rtx4090-24g")));
}

static void assert_term(const struct spw_cli_need *need, enum spw_cli_term term, uint64_t bytes,
                        uint64_t most, enum spw_cli_basis basis)
{
    assert_int_equal(need->terms[term].bytes, bytes);
    assert_int_equal(need->terms[term].most, most);
    assert_int_equal(need->terms[term].basis, basis);
}

static void test_terms(void **state)
{
    const struct spw_gpu_profile *profile = spw_gpu_profile_find("h100-80g");
    struct spw_cli_sim_device device = {
        .total_bytes = 80 * 1024 * MIB,
        .used_peak_bytes = 1100 * MIB,
        .program_peak_bytes = 1000 * MIB,
        .live_peak_bytes = 3000 * MIB,
        .nccl_bytes = 480 * MIB,
        .nccl_most_bytes = 2000 * MIB,
    };
    struct spw_cli_need need = spw_cli_need_of(&device, profile);

    assert_term(&need, SPW_CLI_TERM_PROGRAM, 1000 * MIB, 1000 * MIB, SPW_CLI_EXACT);
    assert_term(&need, SPW_CLI_TERM_CONTEXT, 560 * MIB, 740 * MIB, SPW_CLI_CALIBRATED);
    assert_term(&need, SPW_CLI_TERM_NCCL, 480 * MIB, 2000 * MIB, SPW_CLI_CALIBRATED);
    assert_int_equal(need.in_all, 2040 * MIB);
    assert_int_equal(need.in_all_most, 3740 * MIB);
    assert_int_equal(need.besides, 1040 * MIB);
    assert_int_equal(need.besides_most, 2740 * MIB);

    /* The pool would keep less free on a smaller device. */
    device.pooled = true;
    device.pool_peak_bytes = 950 * MIB;
    device.live_peak_bytes = 882 * MIB;
    need = spw_cli_need_of(&device, profile);
    assert_term(&need, SPW_CLI_TERM_PROGRAM, 950 * MIB, 950 * MIB, SPW_CLI_EXACT);
    device.live_peak_bytes = 980 * MIB;
    need = spw_cli_need_of(&device, profile);
    assert_term(&need, SPW_CLI_TERM_PROGRAM, 1000 * MIB, 1050 * MIB, SPW_CLI_EXACT);
    device.live_peak_bytes = 3000 * MIB;

    device.own_peak_bytes = 800 * MIB; /* more than the table says */
    device.host_peak_bytes = 1;        /* a policy placed it there */
    device.placed_peak_bytes = 1;
    need = spw_cli_need_of(&device, profile);
    assert_term(&need, SPW_CLI_TERM_PROGRAM, 1000 * MIB, 1000 * MIB, SPW_CLI_EXACT);
    device.spilled = true; /* all that lived counts */
    need = spw_cli_need_of(&device, profile);
    assert_term(&need, SPW_CLI_TERM_PROGRAM, 3000 * MIB, 3000 * MIB, SPW_CLI_EXACT);
    assert_term(&need, SPW_CLI_TERM_CONTEXT, 800 * MIB, 800 * MIB, SPW_CLI_CALIBRATED);

    device.overhead_bytes = 560 * MIB; /* NCCL took its memory, and the pool counted it */
    need = spw_cli_need_of(&device, profile);
    assert_term(&need, SPW_CLI_TERM_PROGRAM, 2520 * MIB, 2520 * MIB, SPW_CLI_EXACT);
    need = spw_cli_need_of(&device, spw_gpu_profile_find("gtx1080-8g"));
    assert_int_equal(need.terms[SPW_CLI_TERM_CONTEXT].basis, SPW_CLI_GUESS);
    assert_int_equal(need.terms[SPW_CLI_TERM_NCCL].basis, SPW_CLI_GUESS);
}

/* The host's side of the process counts where the GPU has no memory of its own, and only there. */
static void test_one_memory(void **state)
{
    const struct spw_gpu_profile *profile = spw_gpu_profile_find("gb10-128g");
    struct spw_cli_sim_device device = {
        .total_bytes = 1000 * MIB,
        .used_peak_bytes = 400 * MIB,
        .program_peak_bytes = 400 * MIB,
        .live_peak_bytes = 400 * MIB,
        .host_side_bytes = 250 * MIB,
        .one_memory = true,
    };
    struct spw_cli_need need = spw_cli_need_of(&device, profile);

    assert_term(&need, SPW_CLI_TERM_HOST, 250 * MIB, 250 * MIB, SPW_CLI_MEASURED);
    assert_int_equal(need.in_all, 650 * MIB + need.terms[SPW_CLI_TERM_CONTEXT].bytes);
    assert_int_equal(need.spare, 350 * MIB);
    device.host_side_bytes = 700 * MIB;
    assert_int_equal(spw_cli_need_of(&device, profile).spare, 0);
    need = spw_cli_need_of(&device, spw_gpu_profile_find("gh200-96g"));
    assert_term(&need, SPW_CLI_TERM_HOST, 0, 0, SPW_CLI_EXACT);
    device.one_memory = false; /* measured on a card, asked about GB10 */
    need = spw_cli_need_of(&device, profile);
    assert_int_equal(need.spare, 600 * MIB);
    assert_int_equal(need.terms[SPW_CLI_TERM_HOST].bytes, 700 * MIB);
    assert_int_equal(spw_cli_cards_reserve(profile, 1024 * MIB), 512 * MIB);
    assert_int_equal(spw_cli_cards_reserve(profile, 128 * 1024 * MIB), 8 * 1024 * MIB);
    assert_int_equal(spw_cli_cards_reserve(spw_gpu_profile_find("gh200-96g"), 1024 * MIB), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_measurements),
        cmocka_unit_test(test_of_a_communicator),
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_one_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
