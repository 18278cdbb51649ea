/* Host memory, on machines made of a few files. */
#include "driver/host_memory.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

static const uint64_t gib = UINT64_C(1) << 30;

static char root[64];

static int setup(void **state)
{
    snprintf(root, sizeof(root), "/tmp/spillway-host-XXXXXX");
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", root);
    return system(command);
}

static void put(const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_machine(void)
{
    put("/proc/meminfo", "MemTotal:       33554432 kB\nMemFree:         1 kB\n"
                         "MemAvailable:   16777216 kB\nBuffers: 3 kB\n");
}

static struct spw_host_memory ask(void)
{
    struct spw_host_memory memory;

    spw_driver_host_memory_below(root, &memory);
    return memory;
}

/* A machine, and the control groups of the process according to /proc. */
static void put_in_group(const char *groups)
{
    put_machine();
    put("/proc/self/cgroup", groups);
}

static void test_nothing_known(void **state)
{
    const struct spw_host_memory memory = ask();

    assert_int_equal(memory.total, 0);
    assert_false(memory.limited);
    assert_int_equal(spw_driver_host_memory_share(&memory), 0);
}

static void test_machine(void **state)
{
    struct spw_host_memory memory;

    put_machine();
    memory = ask();
    assert_int_equal(memory.total, 32 * gib);
    assert_int_equal(memory.available, 16 * gib);
    assert_false(memory.limited);
    assert_int_equal(spw_driver_host_memory_share(&memory), 8 * gib);
}

/* Lines that are missing count as 0; the last line may have no end. */
static void test_parts_of_a_machine(void **state)
{
    struct spw_host_memory memory;

    put("/proc/meminfo", "NotMemTotal: 5 kB\nMemTotal: 9 kB");
    memory = ask();
    assert_int_equal(memory.total, 9 * 1024);
    assert_int_equal(memory.available, 0);
    put("/proc/meminfo", "MemAvailable: 7 kB\n");
    memory = ask();
    assert_int_equal(memory.total, 0);
    assert_int_equal(memory.available, 7 * 1024);
}

/* Only the beginning of a long file is read. */
static void test_long_file(void **state)
{
    enum { LONG = 64 * 1024 };
    static char text[LONG];

    memset(text, 'x', LONG - 1);
    memcpy(text, "MemTotal: 4 kB\n", 15);
    memcpy(text + LONG - 30, "\nMemAvailable: 3 kB\n", 20);
    put("/proc/meminfo", text);
    put("/proc/self/cgroup", text);
    assert_int_equal(ask().total, 4 * 1024);
    assert_int_equal(ask().available, 0);
}

static void test_unified_group(void **state)
{
    struct spw_host_memory memory;

    put_in_group("0::/jobs/one\n");
    put("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
    put("/sys/fs/cgroup/jobs/one/memory.current", "1000\n");
    put("/sys/fs/cgroup/jobs/memory.max", "8589934592\n");
    put("/sys/fs/cgroup/jobs/memory.current", "6442450944\n");
    put("/sys/fs/cgroup/jobs/memory.stat", "anon 5\ninactive_file 2147483648\n");
    memory = ask();
    assert_true(memory.limited);
    assert_int_equal(memory.group_limit, 8 * gib);
    assert_int_equal(memory.group_leaves, 4 * gib);
    assert_int_equal(spw_driver_host_memory_share(&memory), 2 * gib);
}

/* A container sees its own group as the root, whatever path /proc reports. */
static void test_path_of_the_host(void **state)
{
    struct spw_host_memory memory;

    put_in_group("0::/docker/0123\n");
    put("/sys/fs/cgroup/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/memory.current", "0\n");
    memory = ask();
    assert_int_equal(memory.group_leaves, 4 * gib);
}

static void test_separate_group(void **state)
{
    struct spw_host_memory memory;

    put_in_group("12:cpu,cpuacct:/x\n9:memory:/job\n1:name=systemd:/y\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
    put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3221225472\n");
    memory = ask();
    assert_true(memory.limited);
    assert_int_equal(memory.group_limit, 2 * gib);
    assert_int_equal(memory.group_leaves, 0);
    assert_int_equal(spw_driver_host_memory_share(&memory), 0);
}

/* Writes a limit and what is used of it for a group of the unified kind. */
static void put_group(const char *folder, const char *limit, const char *usage)
{
    char name[2048];

    snprintf(name, sizeof(name), "/sys/fs/cgroup%s/memory.max", folder);
    put(name, limit);
    snprintf(name, sizeof(name), "/sys/fs/cgroup%s/memory.current", folder);
    put(name, usage);
}

/* Of a group and its ancestors the one counts that leaves least; of equal ones the innermost. */
static void test_several_groups(void **state)
{
    put_in_group("0::/a/b\n");
    put_group("/a", "9000", "0");
    put_group("/a/b", "5000", "3000");
    assert_int_equal(ask().group_leaves, 2000);
    assert_int_equal(ask().group_limit, 5000);
    put_group("/a", "9000", "8999");
    assert_int_equal(ask().group_leaves, 1);
    assert_int_equal(ask().group_limit, 9000);
    put_group("/a", "9000", "7000");
    assert_int_equal(ask().group_leaves, 2000);
    assert_int_equal(ask().group_limit, 5000);
}

/* What can be reclaimed is not used; it may be more than is said to be used. */
static void test_reclaimable(void **state)
{
    put_in_group("0::/a\n");
    put_group("/a", "9000", "5");
    put("/sys/fs/cgroup/a/memory.stat", "inactive_file 3\n");
    assert_int_equal(ask().group_leaves, 8998);
    put("/sys/fs/cgroup/a/memory.stat", "inactive_file 6\n");
    assert_int_equal(ask().group_leaves, 9000);
    put("/sys/fs/cgroup/a/memory.stat", "active_file 3\n");
    assert_int_equal(ask().group_leaves, 8995);
    put_group("/a", "9000", "9000");
    assert_int_equal(ask().group_leaves, 0);
}

/* A limit as large as the machine is none, nor one without a usage. */
static void test_limits_that_are_none(void **state)
{
    put_in_group("0::/a\n");
    put_group("/a", "34359738368", "5");
    assert_false(ask().limited);
    put_group("/a", "34359738367", "5");
    assert_true(ask().limited);
    put_group("/a", "5000", "");
    assert_false(ask().limited);
    put_group("/a", "", "5");
    assert_false(ask().limited);
    put_group("/a", ":", "5");
    assert_false(ask().limited);
    put("/proc/meminfo", "");
    put_group("/a", "34359738368", "5");
    assert_true(ask().limited);
    assert_int_equal(ask().group_limit, 32 * gib);
}

static void test_odd_lines(void **state)
{
    put_in_group("nonsense\n7:memory\n\n0::/a\n");
    put_group("/a", "5000", "0");
    assert_int_equal(ask().group_leaves, 5000);
}

/* A path of a group that is too long is not used in part. */
static void test_long_path(void **state)
{
    enum { MOST = 1023 };
    size_t length = MOST - strlen(root) - strlen("/sys/fs/cgroup");
    char group[2048];

    put_machine();
    put_group("", "5000", "0");
    for (int more = 0; more <= 1; more++) {
        memset(group, 'x', sizeof(group));
        memcpy(group, "0::/", 4);
        group[3 + length + (size_t)more] = '\0';
        put("/proc/self/cgroup", group);
        assert_int_equal(ask().limited, more == 0);
    }
}

/* ---- how much may be taken ---- */

static void test_share(void **state)
{
    struct spw_host_memory memory = {.available = 10, .limited = true, .group_leaves = 8};

    assert_int_equal(spw_driver_host_memory_share(&memory), 4);
    memory.group_leaves = 12;
    assert_int_equal(spw_driver_host_memory_share(&memory), 5);
    assert_int_equal(spw_driver_host_memory_bound(&memory), SPW_HOST_BOUND_MACHINE);
    memory.group_leaves = 2;
    assert_int_equal(spw_driver_host_memory_bound(&memory), SPW_HOST_BOUND_GROUP);
    memory.limited = false;
    assert_int_equal(spw_driver_host_memory_bound(&memory), SPW_HOST_BOUND_MACHINE);
    assert_int_equal(spw_driver_host_memory_share(&memory), 5);
}

static void expect_room(const struct spw_host_memory *memory, uint64_t bytes,
                        enum spw_host_bound bound)
{
    assert_int_equal(spw_driver_host_memory_room(memory).bytes, bytes);
    assert_int_equal(spw_driver_host_memory_room(memory).bound, bound);
}

/* An eighth stays free, and no more than 1 GiB; of the machine, and of its group. */
static void test_room(void **state)
{
    struct spw_host_memory memory = {.total = 32 * gib, .available = 16 * gib};

    expect_room(&memory, 15 * gib, SPW_HOST_BOUND_MACHINE);
    memory.total = 4 * gib;
    memory.available = 2 * gib;
    expect_room(&memory, 2 * gib - gib / 2, SPW_HOST_BOUND_MACHINE);
    memory.available = gib / 4;
    expect_room(&memory, 0, SPW_HOST_BOUND_MACHINE);
    memory.available = 4 * gib;
    memory.group_limit = 2 * gib;
    memory.group_leaves = gib;
    expect_room(&memory, 4 * gib - gib / 2, SPW_HOST_BOUND_MACHINE);
    memory.limited = true;
    expect_room(&memory, gib - gib / 4, SPW_HOST_BOUND_GROUP);
    memory.available = gib;
    expect_room(&memory, gib / 2, SPW_HOST_BOUND_MACHINE);
    memory.total = 0;
    expect_room(&memory, gib - gib / 4, SPW_HOST_BOUND_GROUP);
    memory.limited = false;
    expect_room(&memory, UINT64_MAX, SPW_HOST_BOUND_MACHINE);
}

/* One memory for device and host: the least of what the machine has, and what the groups leave. */
static void test_one(void **state)
{
    struct spw_host_memory memory = {.total = 128 * gib, .available = 100 * gib};

    assert_int_equal(spw_driver_host_memory_one(&memory, 0, 8 * gib), 92 * gib);
    assert_int_equal(spw_driver_host_memory_one(&memory, 70 * gib, 8 * gib), 92 * gib);
    memory.available = 7 * gib;
    assert_int_equal(spw_driver_host_memory_one(&memory, 0, 8 * gib), 0);
    memory.available = 100 * gib;
    memory.limited = true;
    memory.group_limit = 32 * gib;
    memory.group_leaves = memory.group_own_leaves = 30 * gib;
    assert_int_equal(spw_driver_host_memory_one(&memory, 0, 8 * gib), 26 * gib);
    assert_int_equal(spw_driver_host_memory_one(&memory, 0, 2 * gib), 28 * gib);
    memory.available = 20 * gib;
    assert_int_equal(spw_driver_host_memory_one(&memory, 0, 8 * gib), 12 * gib);
    memory.total = memory.available = 0; /* the machine is not known */
    assert_int_equal(spw_driver_host_memory_one(&memory, 0, 8 * gib), 26 * gib);
    memory.limited = false;
    assert_int_equal(spw_driver_host_memory_one(&memory, 0, 8 * gib), UINT64_MAX);
}

/* A group that does not count what the driver allocates, and one that does. */
static void test_one_in_a_group(void **state)
{
    struct spw_host_memory memory;

    put_in_group("0::/a\n");
    put_group("/a", "1000", "300");
    put("/sys/fs/cgroup/a/memory.stat", "anon 200\ninactive_file 50\nshmem 20\n");
    memory = ask();
    assert_int_equal(memory.group_leaves, 750);
    assert_int_equal(memory.group_own_leaves, 780);
    assert_int_equal(spw_driver_host_memory_one(&memory, 0, 0), 750);
    assert_int_equal(spw_driver_host_memory_one(&memory, 400, 0), 380);
    assert_int_equal(spw_driver_host_memory_one(&memory, 800, 0), 0);
    put_group("/a", "1000", "700"); /* 400 of it by the driver */
    memory = ask();
    assert_int_equal(spw_driver_host_memory_one(&memory, 400, 0), 350);
    put("/proc/self/cgroup", "3:memory:/b\n");
    put("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1000");
    put("/sys/fs/cgroup/memory/b/memory.usage_in_bytes", "300");
    put("/sys/fs/cgroup/memory/b/memory.stat", "total_rss 100\ntotal_shmem 30\n");
    memory = ask();
    assert_int_equal(spw_driver_host_memory_one(&memory, 400, 0), 470);
}

/* Each GPU is a folder. */
static void test_gpus(void **state)
{
    assert_int_equal(spw_driver_host_memory_gpus(root), 0);
    put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "");
    assert_int_equal(spw_driver_host_memory_gpus(root), 1);
    put("/proc/driver/nvidia/gpus/0000:02:00.0/information", "");
    assert_int_equal(spw_driver_host_memory_gpus(root), 2);
}

/* No file stays open. */
static void test_many_times(void **state)
{
    enum { TIMES = 100 };
    struct rlimit before, few;

    put_in_group("0::/a\n");
    put_group("/a", "5000", "0");
    put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 32;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(ask().group_limit, 5000);
        assert_int_equal(spw_driver_host_memory_gpus(root), 1);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_this_machine(void **state)
{
    struct spw_host_memory memory;

    spw_driver_host_memory_below("", &memory);
    assert_true(memory.total > 0);
    assert_true(memory.total >= memory.available);
    assert_true(spw_driver_host_memory_share(&memory) <= memory.total / 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_known),
        TEST(test_machine),
        TEST(test_parts_of_a_machine),
        TEST(test_long_file),
        TEST(test_unified_group),
        TEST(test_path_of_the_host),
        TEST(test_separate_group),
        TEST(test_several_groups),
        TEST(test_reclaimable),
        TEST(test_limits_that_are_none),
        TEST(test_odd_lines),
        TEST(test_long_path),
        TEST(test_share),
        TEST(test_room),
        TEST(test_one),
        TEST(test_one_in_a_group),
        TEST(test_gpus),
        TEST(test_many_times),
        TEST(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
