/* The verdict on run directories with spilled memory, several failures, and invalid files. */
#include "cli/verdict/outputs.h"

#include "cli/launch/run_directory.h"
#include "sim/record.h"
#include "stats/exit.h"
#include "stats/stats.h"

#include "child.h"

#include <stdlib.h>
#include <string.h>

static char errors[] = "/tmp/spillway-verdict-XXXXXX";

/* Writes a file of the run directory: the first `bytes` of a record. */
static void write_record(const char *name, const struct sim_record *record, size_t bytes)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", getenv("SPILLWAY_RUN_DIR"), name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fwrite(record, bytes, 1, file) == 1);
    fclose(file);
}

static void write_own_record(const struct sim_record *record)
{
    char name[32];

    snprintf(name, sizeof(name), "sim-%d", (int)getpid());
    write_record(name, record, sizeof(*record));
}

static struct sim_record some_record(void)
{
    static const char command[] = "/usr/bin/python3\0-u\0train.py\0--epochs\0"
                                  "3";
    struct sim_record record = {
        .magic = SIM_RECORD_MAGIC,
        .version = SIM_RECORD_VERSION,
        .bytes = sizeof(record),
        .pid = (int32_t)getpid(),
        .device_count = 1,
        .command_bytes = sizeof(command),
        .devices = {{
            .total_bytes = 1 << 30,
            .used_peak_bytes = 1 << 30,
            .program_peak_bytes = 1 << 30,
            .held_peak_bytes = 1 << 29,
            .launches = {1, 2, 0, 1, 1, 4},
        }},
    };

    memcpy(record.command, command, sizeof(command));
    return record;
}

/* Statistics of this process, as the pool leaves them. */
static struct spw_stats *some_stats(void)
{
    struct spw_stats *stats = spw_stats_create();
    struct spw_counters *counters = &stats->devices[0].counters;

    spw_stats_start(stats, "tensor", "a test", NULL, SPW_SUMMARY_OFF, 1);
    spw_counter_set(&counters->limit_bytes, 1 << 30);
    spw_counter_set(&counters->live_peak_bytes, UINT64_C(3) << 29);
    spw_counter_set(&counters->host_peak_bytes, 1 << 29);
    spw_counter_set(&counters->spilled_bytes, 1 << 29);
    spw_counter_set(&counters->async_live_peak_bytes, 1 << 20);
    spw_counter_set(&counters->async_live_top_bytes, 1 << 29);
    return stats;
}

static const char *verdict(int code)
{
    struct spw_cli_sim_result fit;

    redirect_errors(errors);
    spw_cli_sim_result_read(/* real */ false, &fit);
    spw_cli_verdict_print(&fit, code, /* verbose */ true);
    spw_cli_sim_result_fini(&fit);
    return content(errors);
}

#define HAS(text, part) CHECK(strstr((text), (part)) != NULL)

static void on_the_host(void)
{
    struct sim_record record = some_record();
    struct spw_counters *counters;
    const char *text;

    CHECK(spw_cli_run_directory_create("sim"));
    write_own_record(&record);
    counters = &some_stats()->devices[0].counters;
    spw_counter_set(&counters->paused_bytes, 1 << 28);
    spw_counter_set(&counters->step_out_bytes, 1 << 27);
    spw_counter_set(&counters->step_in_bytes, 1 << 26);
    text = verdict(0);
    HAS(text,
        "spillway: verdict: does not fit in 1 GiB, but runs by spilling: up to 512 MiB on the "
        "host\n");
    HAS(text, "python3 train.py (pid ");
    HAS(text,
        "on device 0 (1 GiB): peak live 1.50 GiB (PyTorch's tensors: up to 512 MiB); peak device "
        "memory 1 GiB\n");
    HAS(text, "in the whole run 512 MiB went to the host (256 MiB of it as the program was paused) "
              "and 0 B came back: at least ");
    HAS(text, " in each direction; in one step 128 MiB and 64 MiB: at least 0.0");
    HAS(text,
        "44.4 % of kernel launches (4 of 9) were checked for use of freed memory; not checked: "
        "1 whose arguments are not known, 4 whose addresses are in structs\n");
    spw_cli_run_directory_remove();
}

static void test_fits_with_memory_on_the_host(void **state)
{
    in_child(on_the_host);
}

/* Memory that only pauses moved to the host is no sign that the program did not fit. */
static void paused(void)
{
    struct sim_record record = some_record();
    struct spw_counters *counters;
    const char *text;

    CHECK(spw_cli_run_directory_create("sim"));
    write_own_record(&record);
    counters = &some_stats()->devices[0].counters;
    spw_counter_set(&counters->paused_bytes, 1 << 29);
    spw_counter_set(&counters->promoted_bytes, 1 << 29);
    text = verdict(0);
    HAS(text, "spillway: verdict: fits ");
    HAS(text, "in the whole run 512 MiB went to the host, as the program was paused, and 512 MiB "
              "came back: at least ");
    HAS(text, " in each direction\n"); /* there was no step */
    spw_cli_run_directory_remove();
}

static void test_fits_with_pauses(void **state)
{
    in_child(paused);
}

/* A share of blocks on the host, or page-locked memory, may count as nothing that went there. */
static void on_the_host_from_the_start(void)
{
    struct sim_record record = some_record();

    CHECK(spw_cli_run_directory_create("sim"));
    write_own_record(&record);
    spw_counter_set(&some_stats()->devices[0].counters.spilled_bytes, 0);
    HAS(verdict(0), "but runs by spilling: up to 512 MiB on the host\n");
    spw_cli_run_directory_remove();
}

static void test_memory_on_the_host_that_did_not_move(void **state)
{
    in_child(on_the_host_from_the_start);
}

/* Memory that rules of a policy placed on the host is no sign that the program did not fit. */
static void placed_by_rules(void)
{
    struct sim_record record = some_record();
    struct spw_stats *stats;
    const char *text;

    CHECK(spw_cli_run_directory_create("sim"));
    record.devices[0].used_peak_bytes = 1 << 28;
    record.devices[0].program_peak_bytes = 1 << 28;
    write_own_record(&record);
    stats = some_stats();
    strcpy(stats->rule_names[0], "unused");
    strcpy(stats->rule_names[1], "states");
    strcpy(stats->rule_names[2], "rest");
    spw_counter_set(&stats->devices[0].rules[1].host_peak, 300 << 20);
    spw_counter_set(&stats->devices[0].counters.spilled_bytes, 0);
    text = verdict(0);
    HAS(text, "verdict: fits in 1 GiB, with 300 MiB placed on the host by rule \"states\", 768 MiB "
              "to spare\n");
    HAS(text, "300 MiB are on the host because the policy says so, and kernels use them there: a "
              "step that reads all of them once takes at least 0.005 s for that, on a link of 63 "
              "GB/s\n");
    HAS(text, "  a real h100-80g needs about 816 MiB, at most 996 MiB: 256 MiB for the program, ");
    CHECK(strstr(text, "spilling") == NULL && strstr(text, "in the whole run") == NULL);
    spw_counter_set(&stats->devices[0].rules[2].host_peak, 100 << 20);
    spw_counter_set(&stats->devices[0].counters.spilled_bytes, 50 << 20);
    text = verdict(0);
    HAS(text, "does not fit in 1 GiB, but runs by spilling: up to 512 MiB on the host, of that up "
              "to 300 MiB placed there by rule \"states\", 100 MiB by rule \"rest\"\n");
    HAS(text, "in the whole run 50 MiB went to the host and 0 B came back: at least ");
    spw_counter_set(&stats->devices[0].counters.paused_bytes, 50 << 20);
    HAS(verdict(0), "verdict: fits in 1 GiB, with 300 MiB placed on the host by rule \"states\", "
                    "100 MiB by rule \"rest\", 768 MiB to spare\n");
    spw_cli_run_directory_remove();
}

static void test_memory_that_rules_placed_on_the_host(void **state)
{
    in_child(placed_by_rules);
}

/* The verdict names the later one of a failure of the pool and one of the driver. */
static void latest(void)
{
    struct sim_record record = some_record();
    struct sim_record_refusal *refusal = &record.devices[0].last[SIM_RECORD_OTHER];
    struct spw_stats *stats;

    CHECK(spw_cli_run_directory_create("sim"));
    record.devices[0].refusals[SIM_RECORD_OTHER] = 1;
    record.devices[0].refused[SIM_RECORD_OTHER] = 1;
    *refusal = (struct sim_record_refusal){.bytes = 3 << 20,
                                           .missing_bytes = 1 << 20,
                                           .time_ns = 1,
                                           .lack = SIM_RECORD_DEVICE,
                                           .api = "cuLaunchKernel_ptsz",
                                           .thread = "worker"};
    write_own_record(&record);
    HAS(verdict(1),
        "does not fit in 1 GiB: cuLaunchKernel on device 0, which needed 3 MiB for code or data");
    stats = some_stats();
    spw_counter_set(&stats->devices[0].counters.ooms, 1);
    spw_stats_refuse(&stats->devices[0].refusal, "cudaMalloc", 7, 5 << 20, 0);
    HAS(verdict(1),
        "does not fit in 1 GiB: allocation 7 on device 0, 5 MiB by cudaMalloc (thread ");
    HAS(verdict(1), " failed: enough memory was free, but in pieces that were too small");
    HAS(verdict(0),
        "ended well in 1 GiB, but not with all that it asked for: allocation 7 on device 0, "
        "5 MiB by cudaMalloc (thread ");
    HAS(verdict(0), ") failed with out of memory, as did another call, and the program continued");
    refusal->time_ns = UINT64_MAX;
    write_own_record(&record);
    HAS(verdict(1), "does not fit in 1 GiB: cuLaunchKernel on device 0");
    refusal->overcome = true;
    record.devices[0].overcome[SIM_RECORD_OTHER] = 1;
    write_own_record(&record);
    HAS(verdict(1), "does not fit in 1 GiB: allocation 7 on device 0");
    HAS(verdict(0), ") failed with out of memory, and the program continued\n");
    HAS(verdict(0), " needs at least about ");
    HAS(verdict(0), "; the refused 5 MiB are not counted");
    HAS(verdict(0), "  1 request failed with out of memory and succeeded when repeated\n");

    /* The one that was overcome came later. */
    record.devices[0].refused[SIM_RECORD_OTHER] = 2;
    record.devices[0].lost[SIM_RECORD_OTHER] = *refusal;
    record.devices[0].lost[SIM_RECORD_OTHER].overcome = false;
    record.devices[0].lost[SIM_RECORD_OTHER].time_ns = UINT64_MAX;
    write_own_record(&record);
    HAS(verdict(0), "asked for: cuLaunchKernel on device 0, which needed 3 MiB");
    HAS(verdict(0), "; the 2 requests that were refused, the last of 3 MiB, are not counted");
    spw_cli_run_directory_remove();
}

static void test_the_latest_failure_counts(void **state)
{
    in_child(latest);
}

/* What a card holds for communicators is a term of its own. */
static void communicators(void)
{
    struct sim_record record = some_record();
    const char *text;

    CHECK(spw_cli_run_directory_create("sim"));
    write_own_record(&record);
    text = verdict(0);
    HAS(text,
        "a real h100-80g needs about 1.55 GiB, at most 1.72 GiB: 1 GiB for the program, 560 MiB "
        "to 740 MiB for CUDA context, code and libraries (from published figures); the verdict "
        "counts the program alone, as no card has about 1 GiB\n");
    record.devices[0].communicators_peak = 2;
    record.devices[0].ranks_peak = 8;
    record.devices[0].nccl_peak_bytes = UINT64_C(1) << 30;
    record.devices[0].nccl_most_peak_bytes = UINT64_C(3) << 30;
    write_own_record(&record);
    text = verdict(0);
    HAS(text, "needs about 2.55 GiB, at most 4.72 GiB: 1 GiB for the program, ");
    HAS(text, "libraries, 1 GiB to 3 GiB for NCCL (2 communicators) (from published figures)");
    spw_cli_run_directory_remove();
}

static void test_communicators(void **state)
{
    in_child(communicators);
}

/* A run on this machine's devices has only the pool's figures, and a measured step. */
static void real(void)
{
    struct spw_cli_sim_result result;
    struct spw_counters *counters;

    CHECK(spw_cli_run_directory_create("run"));
    counters = &some_stats()->devices[0].counters;
    spw_counter_set(&counters->step_ns, 321000000);
    spw_counter_set(&counters->step_held_ns, 98000000);
    redirect_errors(errors);
    spw_cli_sim_result_read(/* real */ true, &result);
    spw_cli_brief_print(&result, 0, /* in_full */ false);
    CHECK(strcmp(content(errors),
                 "spillway: verdict: does not fit in 1 GiB, but runs by spilling 512 MiB\n"
                 "spillway:   peak: 1.50 GiB live\n"
                 "spillway:   next: moves delay a step by 98 ms of 0.32 s; spillway advise may cut "
                 "that\n") == 0);
    spw_cli_sim_result_fini(&result);
    spw_cli_run_directory_remove();
}

static void test_real_run(void **state)
{
    in_child(real);
}

static void invalid_files(void)
{
    struct sim_record record = some_record();

    CHECK(spw_cli_run_directory_create("sim"));
    write_record("sim-1", &record, 100);
    record.version++;
    write_record("sim-2", &record, sizeof(record));
    write_record("unlike", &record, 10);
    HAS(verdict(0), "spillway: verdict: none: no process is known to have used a simulated device, "
                    "nor to have initialised CUDA\n"
                    "spillway:   why: no process is known to have initialised CUDA\n"
                    "spillway:   next: give the program that uses the GPU after --\n");
    spw_cli_run_directory_remove();
    CHECK(access(getenv("SPILLWAY_RUN_DIR"), F_OK) != 0);
}

static void test_invalid_files_are_left_out(void **state)
{
    in_child(invalid_files);
}

static int set_up(void **state)
{
    int fd = mkstemp(errors);

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    return unlink(errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits_with_memory_on_the_host),
        cmocka_unit_test(test_fits_with_pauses),
        cmocka_unit_test(test_memory_on_the_host_that_did_not_move),
        cmocka_unit_test(test_memory_that_rules_placed_on_the_host),
        cmocka_unit_test(test_the_latest_failure_counts),
        cmocka_unit_test(test_communicators),
        cmocka_unit_test(test_real_run),
        cmocka_unit_test(test_invalid_files_are_left_out),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
