/* What a process may do with host memory, and the names of the limits on it. */
#include "driver/host_rights.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/host_bound.h"
#include "folder.h"

static const uint64_t gib = UINT64_C(1) << 30, mib = UINT64_C(1) << 20;

static struct spw_host_rights ask(const char *root)
{
    struct spw_host_rights rights;

    errno = ENOTDIR;
    spw_driver_host_rights_below(root, &rights);
    CHECK(errno == ENOTDIR);
    return rights;
}

static void test_wsl(void **state)
{
    assert_false(ask(folder).wsl);
    assert_false(ask(NULL).wsl);
    assert_int_equal(mkdir(in_folder("dev"), 0755), 0);
    write_text(in_folder("dev/dxg"), "");
    assert_true(ask(folder).wsl);
    assert_false(ask(NULL).wsl);
}

static void limit_locked_memory(void)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    CHECK(ask("").memlock ==
          (limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur));
    limit.rlim_cur = 12345;
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    CHECK(ask("").memlock == 12345);
}

static void test_memlock(void **state)
{
    in_child(limit_locked_memory);
}

/* Refuses a call as the filters of containers do. */
static void refuse(unsigned call)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(rules) / sizeof(*rules), .filter = rules};

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void run_in_a_container(void)
{
    bool before = ask("").places;

    refuse(SYS_getcpu);
    CHECK(ask("").places == before);
    refuse(SYS_get_mempolicy);
    CHECK(!ask("").places);
}

static void test_container(void **state)
{
    in_child(run_in_a_container);
}

static enum spw_host_bound wall(bool wsl, uint64_t memlock, uint64_t bytes)
{
    const struct spw_host_rights rights = {.wsl = wsl, .memlock = memlock};

    return spw_driver_host_rights_wall(&rights, bytes, 64 * mib);
}

/* A limit explains a wall only if the next request would have exceeded it. */
static void test_what_explains_a_wall(void **state)
{
    assert_int_equal(wall(true, gib, gib), SPW_HOST_BOUND_WSL);
    assert_int_equal(wall(false, gib, gib), SPW_HOST_BOUND_MEMLOCK);
    assert_int_equal(wall(false, gib, gib - 64 * mib + 1), SPW_HOST_BOUND_MEMLOCK);
    assert_int_equal(wall(false, gib, gib - 64 * mib), SPW_HOST_BOUND_DRIVER);
    assert_int_equal(wall(false, gib, gib + 1), SPW_HOST_BOUND_DRIVER);
    assert_int_equal(wall(false, UINT64_MAX, gib), SPW_HOST_BOUND_DRIVER);
}

static void test_names(void **state)
{
    const struct spw_host_limit small = {1, SPW_HOST_BOUND_GROUP}, large = {2, SPW_HOST_BOUND_WSL};

    assert_string_equal(spw_host_bound_key(SPW_HOST_BOUND_GROUP), "control-group");
    assert_string_equal(spw_host_bound_text(SPW_HOST_BOUND_GROUP), "the control group");
    assert_string_equal(spw_host_bound_key(SPW_HOST_BOUND_COUNT), "none");
    assert_string_equal(spw_host_bound_text(UINT64_MAX), "nothing");
    assert_int_equal(spw_host_limit_least(small, large).bound, SPW_HOST_BOUND_GROUP);
    assert_int_equal(spw_host_limit_least(large, small).bound, SPW_HOST_BOUND_GROUP);
}

static int setup(void **state)
{
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wsl),       cmocka_unit_test(test_memlock),
        cmocka_unit_test(test_container), cmocka_unit_test(test_what_explains_a_wall),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
