#include "stats/stats.h"

#include "system/pid.h"
#include "system/start.h"
#include "stats/exit.h"
#include "stats/file.h"
#include "stats/output.h"
#include "stats/path.h"
#include "stats/process.h"
#include "stats/summary.h"

#include "child.h"
#include "folder.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GIB (UINT64_C(1) << 30)

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Removes what a process has left in the launcher's folder. */
static void forget(const char *mapping)
{
    char link[160];

    snprintf(link, sizeof(link), "%s.statistics", mapping);
    assert_int_equal(unlink(mapping), 0);
    assert_int_equal(unlink(link), 0);
}

static struct spw_stats *start(const char *path)
{
    struct spw_stats *stats = spw_stats_create();

    strcpy(stats->call_names[0], "cuMemCreate");
    strcpy(stats->call_names[1], "cuMemMap");
    strcpy(stats->call_names[2], "cuMemUnmap");
    spw_stats_start(stats, "auto", "no allocator is configured", path, SPW_SUMMARY_ON, 2);
    return stats;
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsNumber(value)) {
        fprintf(stderr, "%s is missing\n", key);
        _exit(1);
    }
    return value->valuedouble;
}

static void write_figures(void)
{
    struct spw_stats *stats = start(in_folder("s.json"));
    struct spw_stats_device *device = &stats->devices[1];
    uint64_t value = 1000;
    const cJSON *devices;
    const cJSON *item;
    const cJSON *calls;
    cJSON *root;

#define SPW_COUNTER(name, kind, help) spw_counter_set(&device->counters.name, value++);
#include "common/counters.def"
#undef SPW_COUNTER
    spw_counter_set(&device->driver_calls[0], 7);
    spw_counter_set(&device->driver_calls[2], UINT64_C(1) << 40);
    CHECK(spw_stats_write(stats));

    root = cJSON_Parse(content(in_folder("s.json")));
    CHECK(root != NULL);
    CHECK(number(root, "schema") == 1);
    CHECK(number(root, "pid") == getpid());
    CHECK(strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(root, "mode")), "auto") == 0);
    devices = cJSON_GetObjectItem(root, "devices");
    CHECK(cJSON_GetArraySize(devices) == 2);
    CHECK(number(cJSON_GetArrayItem(devices, 0), "ordinal") == 0);
    CHECK(number(cJSON_GetArrayItem(devices, 0), "live_bytes") == 0);
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetArrayItem(devices, 0), "driver_calls")) ==
          0);
    item = cJSON_GetArrayItem(devices, 1);
    CHECK(number(item, "ordinal") == 1);
    value = 1000;
#define SPW_COUNTER(name, kind, help) CHECK(number(item, #name) == (double)value++);
#include "common/counters.def"
#undef SPW_COUNTER
    calls = cJSON_GetObjectItem(item, "driver_calls");
    CHECK(cJSON_GetArraySize(calls) == 2); /* cuMemMap was never called */
    CHECK(number(calls, "cuMemCreate") == 7);
    CHECK(number(calls, "cuMemUnmap") == 1099511627776.0);
    cJSON_Delete(root);
}

static void test_file(void **state)
{
    in_child(write_figures);
    unlink(in_folder("s.json"));
}

/* The keys of the contract, written out: renaming a counter must fail here. */
static void test_contract_keys(void **state)
{
    static const char *const keys[] = {
        "ordinal",
        "limit_bytes",
        "live_bytes",
        "live_peak_bytes",
        "committed_bytes",
        "host_bytes",
        "host_peak_bytes",
        "committed_peak_bytes",
        "pinned_bytes",
        "passed_bytes",
        "allocs",
        "frees",
        "passed_allocs",
        "steals",
        "spilled_bytes",
        "promoted_bytes",
        "ooms",
        "driver_calls",
    };
    const cJSON *device;
    cJSON *root;

    in_child(write_figures);
    root = cJSON_Parse(content(in_folder("s.json")));
    device = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "devices"), 0);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        if (!cJSON_HasObjectItem(device, keys[i])) {
            fail_msg("%s is missing", keys[i]);
        }
    }
    cJSON_Delete(root);
    unlink(in_folder("s.json"));
}

static const char odd[] = "a \"b\" \\ \n\t\x01 \x7f \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 "
                          "\xff|\xc0\x80|\xed\xa0\x80|\xc3";
static const char odd_read[] =
    "a \"b\" \\ \n\t\x01 \x7f \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 "
    "\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd";

static void write_odd_strings(void)
{
    struct spw_stats *stats = spw_stats_create();
    cJSON *root;

    strcpy(stats->call_names[0], odd);
    spw_counter_set(&stats->devices[0].driver_calls[0], 3);
    spw_stats_start(stats, odd, odd, in_folder("odd.json"), SPW_SUMMARY_OFF, 1);
    CHECK(spw_stats_write(stats));
    root = cJSON_Parse(content(in_folder("odd.json")));
    CHECK(root != NULL);
    CHECK(strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(root, "why")), odd_read) == 0);
    CHECK(strcmp(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "devices"), 0)->child->string,
                 "ordinal") == 0);
    cJSON_Delete(root);
}

static void test_escaping(void **state)
{
    in_child(write_odd_strings);
    unlink(in_folder("odd.json"));
}

static void expand(void)
{
    char path[SPW_STATS_PATH];
    char expected[SPW_STATS_PATH];
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    unsetenv("RANK");
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    snprintf(expected, sizeof(expected), "%s/a-3.json", spw_start_folder());
    CHECK(spw_stats_path_expand("a-%r.json", path, sizeof(path)) && strcmp(path, expected) == 0);
    setenv("RANK", "5", 1);
    snprintf(expected, sizeof(expected), "/x/%s/5/%d-%%-%%z-%%", host, (int)getpid());
    CHECK(spw_stats_path_expand("/x/%h/%r/%p-%%-%z-%", path, sizeof(path)) &&
          strcmp(path, expected) == 0);
    CHECK(!spw_stats_path_expand("/0123456789", path, 11) &&
          spw_stats_path_expand("/0123456789", path, 12));
    CHECK(spw_stats_path_expand_for("/x-%r", "7", path, sizeof(path)) && strcmp(path, "/x-7") == 0);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    CHECK(spw_stats_ranks() == 4);
    setenv("WORLD_SIZE", "2", 1);
    CHECK(spw_stats_ranks() == 2);
}

static void test_path_directives(void **state)
{
    in_child(expand);
}

static void write_and_leave(void)
{
    CHECK(spw_stats_write(start(in_folder("s.json"))));
}

/* The owner of an own file, and that a second write replaces the first. */
static void write_twice(void)
{
    struct spw_stats *stats = start(in_folder("s.json"));

    CHECK(spw_stats_write(stats));
    spw_counter_set(&stats->devices[0].counters.ooms, 1);
    CHECK(spw_stats_write(stats));
    CHECK(spw_stats_path_owner(in_folder("s.json")) == getpid());
    CHECK(strstr(content(in_folder("s.json")), "\"ooms\": 1") != NULL);
}

static void test_own_file_is_replaced(void **state)
{
    in_child(write_twice);
    assert_int_equal(unlink(in_folder("s.json")), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    assert_int_equal(mkdir(folder, 0700), 0);
}

/* A process of the same run that begins earlier and writes later: the name is taken. */
static void write_after_a_child(void)
{
    char with_pid[160];

    usleep(30000); /* times of processes are in ticks of 10 ms */
    in_child(write_and_leave);
    CHECK(spw_stats_path_owner(in_folder("s.json")) != getpid());
    CHECK(spw_stats_write(start(in_folder("s.json"))));
    CHECK(spw_stats_path_owner(in_folder("s.json")) != getpid());
    snprintf(with_pid, sizeof(with_pid), "%s.%d", in_folder("s.json"), (int)getpid());
    CHECK(spw_stats_path_owner(with_pid) == getpid());
    CHECK(unlink(with_pid) == 0);
}

static void test_second_process_appends_its_pid(void **state)
{
    in_child(write_after_a_child);
    assert_int_equal(unlink(in_folder("s.json")), 0);
}

static void make_old(const char *path)
{
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void start_and_leave(void)
{
    start(in_folder("s.json"));
}

/* An old statistics file and an empty file (mktemp's) make room, anything else does not. */
static void test_earlier_run_is_removed(void **state)
{
    write_text(in_folder("s.json"), "{\"schema\": 1, \"pid\": 1, \"mode\"...");
    make_old(in_folder("s.json"));
    in_child(start_and_leave);
    assert_false(exists(in_folder("s.json")));

    write_text(in_folder("s.json"), "");
    make_old(in_folder("s.json"));
    in_child(start_and_leave);
    assert_false(exists(in_folder("s.json")));

    write_text(in_folder("s.json"), "{\"my\": \"homework\"}");
    make_old(in_folder("s.json"));
    in_child(start_and_leave);
    assert_string_equal(content(in_folder("s.json")), "{\"my\": \"homework\"}");
    unlink(in_folder("s.json"));
}

/* A link (/dev/stderr is one) is the user's: neither it nor what it leads to is removed. */
static void test_links_are_left_alone(void **state)
{
    write_text(in_folder("target"), "{\"schema\": 1, \"pid\": 1, \"mode\"...");
    make_old(in_folder("target"));
    assert_int_equal(symlink("target", in_folder("s.json")), 0);
    in_child(start_and_leave);
    assert_true(exists(in_folder("s.json")));
    assert_int_equal(unlink(in_folder("s.json")), 0);
    assert_int_equal(unlink(in_folder("target")), 0);
}

/* Under the launcher a file stays though it is older than this process: it is of the same run. */
/* Somebody who guesses the temporary name makes it a link: PATH.PID.NUMBER.tmp. */
static void write_beside_links(void)
{
    char name[128], victim[128];

    snprintf(victim, sizeof(victim), "%s", in_folder("victim"));
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "%s.%d.%d.tmp", in_folder("s.json"), (int)getpid(), i);
        CHECK(symlink(victim, name) == 0);
    }
    write_figures();
    CHECK(strcmp(content(victim), "precious") == 0);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "%s.%d.%d.tmp", in_folder("s.json"), (int)getpid(), i);
        CHECK(unlink(name) == 0);
    }
}

static void test_guessed_temporary_name(void **state)
{
    write_text(in_folder("victim"), "precious");
    in_child(write_beside_links);
    assert_int_equal(unlink(in_folder("victim")), 0);
    assert_int_equal(unlink(in_folder("s.json")), 0);
}

/* A link that another user placed where the statistics go is not followed. */
static void write_at_a_link(void)
{
    char with_pid[128];

    CHECK(spw_stats_write(start(in_folder("s.json"))));
    snprintf(with_pid, sizeof(with_pid), "%s.%d", in_folder("s.json"), (int)getpid());
    CHECK(spw_stats_path_owner(with_pid) == getpid());
    CHECK(unlink(with_pid) == 0);
}

static void test_foreign_link_to_a_pipe(void **state)
{
    enum { NOBODY = 65534 };
    char text[8];
    int pipe;

    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(symlink("pipe", in_folder("s.json")), 0);
    assert_int_equal(lchown(in_folder("s.json"), NOBODY, NOBODY), 0);
    assert_int_equal(chmod(folder, 01777), 0);
    pipe = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    in_child(write_at_a_link);
    assert_int_equal(read(pipe, text, sizeof(text)), 0);
    close(pipe);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(unlink(in_folder("s.json")), 0);
    assert_int_equal(unlink(in_folder("pipe")), 0);
}

static void test_same_run_is_kept(void **state)
{
    char mapping[128];

    write_text(in_folder("s.json"), "{\"schema\": 1, \"pid\": 77, \"mode\"...");
    make_old(in_folder("s.json"));
    write_text(in_folder("77"), "the mapping");
    setenv("SPILLWAY_RUN_DIR", folder, 1);
    snprintf(mapping, sizeof(mapping), "%s/%d", folder, (int)in_child(start_and_leave));
    unsetenv("SPILLWAY_RUN_DIR");
    assert_true(exists(in_folder("s.json")));
    forget(mapping);
    unlink(in_folder("77"));
    unlink(in_folder("s.json"));
}

static void write_where_it_cannot(void)
{
    redirect_errors(in_folder("errors"));
    CHECK(!spw_stats_write(start("/does/not/exist/s.json")));
}

static void test_unwritable_path_is_reported(void **state)
{
    in_child(write_where_it_cannot);
    assert_string_equal(content(in_folder("errors")),
                        "spillway: cannot write statistics to /does/not/exist/s.json: No such "
                        "file or directory\n");
    unlink(in_folder("errors"));
}

static void write_to_stderr(void)
{
    redirect_errors(in_folder("errors"));
    CHECK(spw_stats_write(start("/dev/stderr")));
}

static void test_special_file_is_written_in_place(void **state)
{
    in_child(write_to_stderr);
    assert_int_equal(strncmp(content(in_folder("errors")), "{\"schema\": 1", 12), 0);
    unlink(in_folder("errors"));
}

static void use_devices(struct spw_stats *stats)
{
    struct spw_stats_device *device = &stats->devices[1];
    struct spw_counters *counters = &device->counters;

    spw_counter_set(&counters->limit_bytes, 6 * GIB);
    spw_counter_set(&counters->live_peak_bytes, 4 * GIB);
    spw_counter_set(&counters->committed_peak_bytes, 5 * GIB);
    spw_counter_set(&counters->allocs, 10);
    spw_counter_set(&counters->frees, 9);
    spw_counter_set(&counters->steals, 3);
    spw_counter_set(&device->driver_calls[0], 20);
    spw_counter_set(&device->driver_calls[1], 22);
}

/* Set before a child is forked to summarise. */
static enum spw_summary extent = SPW_SUMMARY_ON;
static uint64_t failed_open = 1;

/* The statistics of a process whose summary is read from a file. */
static struct spw_stats *start_process(const char *name, int pid)
{
    struct spw_stats *stats = start(NULL);

    redirect_errors(in_folder("errors"));
    strcpy(stats->process, name);
    stats->pid = pid;
    return stats;
}

static void summarise(void)
{
    struct spw_stats *stats = start_process("python3 train.py", 12);

    use_devices(stats);
    spw_stats_summary(stats, extent, STDERR_FILENO);
}

static void summarise_trouble(void)
{
    struct spw_stats *stats = start_process("app", 13);
    struct spw_counters *counters = &stats->devices[0].counters;

    spw_counter_set(&counters->passed_allocs, 10);
    spw_counter_set(&counters->captured_allocs, 4);
    spw_counter_set(&counters->foreign_pool_allocs, 2);
    spw_counter_set(&counters->failed_open, failed_open);
    spw_counter_set(&counters->ooms, 1);
    spw_counter_set(&counters->forward_retries, 2);
    spw_counter_set(&counters->host_peak_bytes, GIB);
    spw_stats_summary(stats, extent, STDERR_FILENO);
}

/* The figures of a step, and when the summary names another way to move memory. */
static void summarise_steps(void)
{
    struct spw_stats *stats = start_process("app", 14);
    struct spw_counters *counters = &stats->devices[0].counters;

    spw_counter_set(&counters->live_peak_bytes, GIB);
    spw_counter_set(&counters->step_ns, 80999999);
    spw_counter_set(&counters->step_out_bytes, 2 * GIB);
    spw_counter_set(&counters->step_in_bytes, GIB);
    for (uint64_t held = 10000000; held <= 11000000; held += 1000000) {
        for (int safe = 0; safe < 2; safe++) {
            spw_counter_set(&counters->step_held_ns, held);
            stats->safe = safe;
            spw_stats_summary(stats, SPW_SUMMARY_SHORT, STDERR_FILENO);
        }
    }
    stats->safe = false;
    /* A link of 55 GB/s needs 39.0 ms for 2 GiB. At last, it needs longer than the step takes. */
    for (uint64_t i = 0; i < 3; i++) {
        spw_counter_set(&counters->step_held_ns, i == 0 ? 54000000 : 60000000);
        spw_counter_set(&counters->step_out_bytes, (i < 2 ? 2 : 5) * GIB);
        spw_stats_summary(stats, SPW_SUMMARY_SHORT, STDERR_FILENO);
    }
}

static void test_steps_in_the_summary(void **state)
{
    const char *text;
    int told = 0;

    in_child(summarise_steps);
    text = content(in_folder("errors"));
    assert_non_null(strstr(text,
                           "spillway: device 0: a step took 80.9 ms when last measured; in it 2 "
                           "GiB moved to the host, 1 GiB moved back, and GPU work was held "
                           "back 10 ms\n"));
    for (const char *at = text; (at = strstr(at, "with SPILLWAY_OVERLAP=guarded")) != NULL; at++) {
        told++;
    }
    assert_int_equal(told, 1); /* held back for long, in the default way */
    text = strstr(text, "without moves");
    assert_non_null(text);
    assert_null(strstr(text + 1, "without moves"));
    assert_memory_equal(text, "without moves such a step takes at most 20.9 ms, and its bytes ",
                        63);
    unlink(in_folder("errors"));
}

static void summarise_nothing(void)
{
    redirect_errors(in_folder("errors"));
    spw_stats_summary(start(NULL), extent, STDERR_FILENO);
}

static void test_summary(void **state)
{
    in_child(summarise);
    assert_string_equal(content(in_folder("errors")),
                        "spillway: python3 train.py (pid 12): mode auto (no allocator is "
                        "configured)\n"
                        "spillway: device 1: peak live 4 GiB, peak committed 5 GiB (80.0 % used); "
                        "limit 6 GiB\n"
                        "spillway: device 1: 10 allocations, 9 frees, 3 granules remapped, 0 waits "
                        "for the device, 42 driver calls by spillway\n");
    in_child(summarise_trouble);
    assert_string_equal(
        content(in_folder("errors")),
        "spillway: app (pid 13): mode auto (no allocator is configured)\n"
        "spillway: device 0: peak live 0 B, peak committed 0 B; limit 0 B; peak on the host 1 GiB\n"
        "spillway: device 0: 0 allocations, 0 frees, 0 granules remapped, 0 waits for the device, "
        "0 driver calls by spillway\n"
        "spillway: device 0: 10 allocations left to the driver: 4 during graph capture, 2 from the "
        "program's memory pools, 1 after an error in the pool, 3 because of the mode\n"
        "spillway: device 0: 1 allocation refused as out of memory, 2 calls repeated after "
        "free memory was given back\n");
    in_child(summarise_nothing);
    assert_string_equal(content(in_folder("errors")), "");
    unlink(in_folder("errors"));
}

static void test_summary_in_short(void **state)
{
    extent = SPW_SUMMARY_SHORT;
    in_child(summarise);
    assert_string_equal(content(in_folder("errors")),
                        "spillway: python3 train.py (pid 12): device 1: peak live 4 GiB, peak "
                        "committed 5 GiB (80.0 % used); limit 6 GiB\n");
    in_child(summarise_trouble);
    assert_string_equal(
        content(in_folder("errors")),
        "spillway: app (pid 13): mode auto (no allocator is configured)\n"
        "spillway: app (pid 13): device 0: peak live 0 B, peak committed 0 B; limit 0 B; peak on "
        "the host 1 GiB\n"
        "spillway: device 0: 10 allocations left to the driver: 4 during graph capture, 2 from the "
        "program's memory pools, 1 after an error in the pool, 3 because of the mode\n"
        "spillway: device 0: 1 allocation refused as out of memory\n");
    setenv("RANK", "3", 1);
    in_child(summarise);
    assert_string_equal(content(in_folder("errors")), "");
    setenv("RANK", "0", 1);
    in_child(summarise);
    assert_non_null(strstr(content(in_folder("errors")), "train.py (pid 12, rank 0): device 1: "));
    unsetenv("RANK");
    extent = SPW_SUMMARY_RULES;
    in_child(summarise);
    assert_string_equal(content(in_folder("errors")), "");
    in_child(summarise_trouble);
    assert_null(strstr(content(in_folder("errors")), "peak live"));
    assert_non_null(strstr(content(in_folder("errors")), "1 allocation refused as out of"));
    extent = SPW_SUMMARY_SHORT, failed_open = 0; /* what the driver served is no trouble then */
    in_child(summarise_trouble);
    assert_null(strstr(content(in_folder("errors")), "left to the driver"));
    extent = SPW_SUMMARY_OFF;
    in_child(summarise_trouble);
    assert_string_equal(content(in_folder("errors")), "");
    extent = SPW_SUMMARY_ON;
    unlink(in_folder("errors"));
}

static void exit_normally(void)
{
    redirect_errors(in_folder("errors"));
    use_devices(start(in_folder("s.json")));
    if (fork() == 0) {
        exit(0); /* inherits the exit handler, but the statistics are not its own */
    }
    wait(NULL);
    CHECK(!exists(in_folder("s.json")));
    exit(0);
}

static void test_exit_handler(void **state)
{
    const char *text;

    in_child(exit_normally);
    assert_true(exists(in_folder("s.json")));
    text = content(in_folder("errors"));
    assert_non_null(strstr(text, "device 1: peak live 4 GiB"));
    assert_null(strstr(strstr(text, "device 1: peak"), "pid")); /* once */
    unlink(in_folder("s.json"));
    unlink(in_folder("errors"));
}

static void die_early(void)
{
    struct spw_stats *stats = start(in_folder("s.json"));

    use_devices(stats);
    _exit(0);
}

/* The launcher's part: the mapping outlives the process. */
static void test_launcher_finishes(void **state)
{
    struct spw_stats *stats;
    char mapping[128];
    int saved = dup(STDERR_FILENO);
    const char *text;
    pid_t child;

    setenv("SPILLWAY_RUN_DIR", folder, 1);
    child = fork();
    if (child == 0) {
        die_early();
    }
    waitpid(child, NULL, 0);
    unsetenv("SPILLWAY_RUN_DIR");
    snprintf(mapping, sizeof(mapping), "%s/%d", folder, (int)child);
    stats = spw_stats_open(mapping);
    assert_non_null(stats);
    assert_int_equal(stats->state, SPW_STATS_RUNNING);
    assert_int_equal(stats->pid, child);
    redirect_errors(in_folder("errors"));
    spw_stats_output_find(SPW_STATS_FILE, mapping);
    spw_stats_finish(stats);
    spw_stats_finish(stats); /* changes nothing */
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(stats->state, SPW_STATS_WRITTEN);
    assert_int_equal(spw_stats_path_owner(in_folder("s.json")), child);
    text = content(in_folder("errors"));
    assert_non_null(strstr(text, "device 1"));
    assert_null(strstr(strstr(text, "(pid ") + 1, "(pid "));
    spw_stats_close(stats);
    forget(mapping);
    unlink(in_folder("s.json"));
    unlink(in_folder("errors"));
}

static void test_open_refuses_other_versions(void **state)
{
    const uint32_t version = SPW_STATS_VERSION + 1;
    struct spw_stats *stats;
    char mapping[128];
    int fd;

    setenv("SPILLWAY_RUN_DIR", folder, 1);
    snprintf(mapping, sizeof(mapping), "%s/%d", folder, (int)in_child(start_and_leave));
    unsetenv("SPILLWAY_RUN_DIR");
    stats = spw_stats_open(mapping);
    assert_non_null(stats);
    spw_stats_close(stats);
    fd = open(mapping, O_WRONLY);
    assert_int_equal(pwrite(fd, &version, sizeof(version), offsetof(struct spw_stats, version)),
                     sizeof(version));
    close(fd);
    assert_null(spw_stats_open(mapping));
    forget(mapping);
}

/* The largest values that a process writes are kept; one more is not. */
static void test_open_keeps_the_largest(void **state)
{
    for (int more = 0; more < 2; more++) {
        const int holders = SPW_STATS_HOLDERS + more;
        const uint32_t control = SPW_CONTROL_PAUSED_ON_DEMAND + (uint32_t)more;
        struct spw_stats *stats;
        char mapping[128];
        int fd;

        setenv("SPILLWAY_RUN_DIR", folder, 1);
        snprintf(mapping, sizeof(mapping), "%s/%d", folder, (int)in_child(start_and_leave));
        unsetenv("SPILLWAY_RUN_DIR");
        fd = open(mapping, O_WRONLY);
        assert_int_equal(
            pwrite(fd, &holders, sizeof(holders), offsetof(struct spw_stats, oom.holder_count)),
            sizeof(holders));
        assert_int_equal(
            pwrite(fd, &control, sizeof(control), offsetof(struct spw_stats, control.state)),
            sizeof(control));
        close(fd);
        stats = spw_stats_open(mapping);
        assert_non_null(stats);
        assert_int_equal(stats->oom.holder_count, more ? 0 : SPW_STATS_HOLDERS);
        assert_int_equal(atomic_load(&stats->control.state),
                         more ? SPW_CONTROL_NONE : SPW_CONTROL_PAUSED_ON_DEMAND);
        spw_stats_close(stats);
        forget(mapping);
    }
}

static void test_open_refuses_others(void **state)
{
    write_text(in_folder("x"), "not statistics");
    assert_null(spw_stats_open(in_folder("x")));
    assert_null(spw_stats_open(in_folder("none")));
    assert_int_equal(truncate(in_folder("x"), sizeof(struct spw_stats)), 0);
    assert_null(spw_stats_open(in_folder("x")));
    unlink(in_folder("x"));
}

static void fork_and_forget(void)
{
    struct spw_stats *stats = start(NULL);
    int status = -1;

    spw_counter_set(&stats->devices[0].counters.allocs, 5);
    if (fork() == 0) {
        struct spw_stats *again;

        spw_stats_forget();
        CHECK(stats->pid == 0);
        spw_counter_set(&stats->devices[0].counters.allocs, 9); /* a stale pointer */
        again = spw_stats_create();
        CHECK(again == stats);
        CHECK(again->pid == getpid());
        CHECK(spw_counter_get(&again->devices[0].counters.allocs) == 0);
        spw_counter_set(&again->devices[0].counters.allocs, 11);
        _exit(0);
    }
    wait(&status);
    CHECK(status == 0);
    CHECK(spw_counter_get(&stats->devices[0].counters.allocs) == 5);
    CHECK(stats->pid == getpid());
}

static void test_fork(void **state)
{
    in_child(fork_and_forget);
    setenv("SPILLWAY_RUN_DIR", "/does/not/exist", 1); /* then a memfd */
    in_child(fork_and_forget);
    unsetenv("SPILLWAY_RUN_DIR");
}

static void test_process(void **state)
{
    uint64_t ticks = 0;
    char letter = '?';
    char name[64];
    struct timespec now;
    struct timespec began;

    spw_stats_process_name(name, sizeof(name));
    assert_string_equal(name, "test_stats");
    assert_true(spw_pid_start((int)getpid(), &ticks, &letter));
    assert_int_equal(letter, 'R');
    clock_gettime(CLOCK_REALTIME, &now);
    began = spw_pid_start_time(ticks);
    assert_true(began.tv_sec <= now.tv_sec + 1);
    assert_true(began.tv_sec + 60 > now.tv_sec);
    assert_false(spw_pid_start(-1, &ticks, &letter));
}

static int set_up(void **state)
{
    unsetenv("SPILLWAY_RUN_DIR");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* Fails when a test has left anything behind. */
static int tear_down(void **state)
{
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_contract_keys),
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_path_directives),
        cmocka_unit_test(test_own_file_is_replaced),
        cmocka_unit_test(test_second_process_appends_its_pid),
        cmocka_unit_test(test_earlier_run_is_removed),
        cmocka_unit_test(test_links_are_left_alone),
        cmocka_unit_test(test_guessed_temporary_name),
        cmocka_unit_test(test_foreign_link_to_a_pipe),
        cmocka_unit_test(test_same_run_is_kept),
        cmocka_unit_test(test_unwritable_path_is_reported),
        cmocka_unit_test(test_special_file_is_written_in_place),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_summary_in_short),
        cmocka_unit_test(test_steps_in_the_summary),
        cmocka_unit_test(test_exit_handler),
        cmocka_unit_test(test_launcher_finishes),
        cmocka_unit_test(test_open_refuses_other_versions),
        cmocka_unit_test(test_open_keeps_the_largest),
        cmocka_unit_test(test_open_refuses_others),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_process),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
