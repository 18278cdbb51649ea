/* Host memory, on machines made of a few files. */
#include "migrate/host_memory.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static struct spw_migrate_host_memory ask(void)
{
    struct spw_migrate_host_memory memory;

    spw_migrate_host_memory_below(root, &memory);
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
    const struct spw_migrate_host_memory memory = ask();

    assert_int_equal(memory.total, 0);
    assert_false(memory.limited);
    assert_int_equal(spw_migrate_host_memory_share(&memory), 0);
}

static void test_machine(void **state)
{
    struct spw_migrate_host_memory memory;

    put_machine();
    memory = ask();
    assert_int_equal(memory.total, 32 * gib);
    assert_int_equal(memory.available, 16 * gib);
    assert_false(memory.limited);
    assert_int_equal(spw_migrate_host_memory_share(&memory), 8 * gib);
}

static void test_unified_group(void **state)
{
    struct spw_migrate_host_memory memory;

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
    assert_int_equal(spw_migrate_host_memory_share(&memory), 2 * gib);
}

/* A container sees its own group as the root, whatever path /proc reports. */
static void test_path_of_the_host(void **state)
{
    struct spw_migrate_host_memory memory;

    put_in_group("0::/docker/0123\n");
    put("/sys/fs/cgroup/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/memory.current", "0\n");
    memory = ask();
    assert_int_equal(memory.group_leaves, 4 * gib);
}

static void test_separate_group(void **state)
{
    struct spw_migrate_host_memory memory;

    put_in_group("12:cpu,cpuacct:/x\n9:memory:/job\n1:name=systemd:/y\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
    put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3221225472\n");
    memory = ask();
    assert_true(memory.limited);
    assert_int_equal(memory.group_limit, 2 * gib);
    assert_int_equal(memory.group_leaves, 0);
    assert_int_equal(spw_migrate_host_memory_share(&memory), 0);
}

static void test_this_machine(void **state)
{
    struct spw_migrate_host_memory memory;

    spw_migrate_host_memory(&memory);
    assert_true(memory.total >= memory.available);
    assert_true(spw_migrate_host_memory_share(&memory) <= memory.total / 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_known),    TEST(test_machine),        TEST(test_unified_group),
        TEST(test_path_of_the_host), TEST(test_separate_group), TEST(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
