/* Statistics files are written whole or not at all, whatever the file system can do and whenever
 * the process ends. */
#include "stats/stats.h"

#include "stats/exit.h"
#include "stats/file.h"
#include "stats/path.h"

#include "child.h"
#include "folder.h"
#include "nameless.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* In the place of the system's, which says here that the file system cannot do it. */
static bool no_links;

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    if (no_links) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

static struct spw_stats *start(void)
{
    struct spw_stats *stats = spw_stats_create();

    spw_stats_start(stats, "auto", "no allocator is configured", in_folder("s.json"),
                    SPW_SUMMARY_OFF, 2);
    return stats;
}

/* The owner of an own file, and that a second write replaces the first. */
static void write_twice(void)
{
    struct spw_stats *stats = start();

    CHECK(spw_stats_write(stats));
    spw_counter_set(&stats->devices[0].counters.ooms, 1);
    CHECK(spw_stats_write(stats));
    CHECK(spw_stats_path_owner(in_folder("s.json")) == getpid());
    CHECK(strstr(content(in_folder("s.json")), "\"ooms\": 1") != NULL);
}

/* With %r, only a process that used memory writes. */
static void write_for_a_rank(void)
{
    struct spw_stats *stats = spw_stats_create();

    unsetenv("RANK");
    spw_stats_start(stats, "auto", "no allocator is configured", in_folder("r-%r.json"),
                    SPW_SUMMARY_OFF, 2);
    CHECK(spw_stats_write(stats));
    CHECK(access(in_folder("r-0.json"), F_OK) != 0);
    spw_counter_set(&stats->devices[1].counters.live_peak_bytes, 1);
    CHECK(spw_stats_write(stats));
    CHECK(spw_stats_path_owner(in_folder("r-0.json")) == getpid());
    CHECK(!spw_stats_path_has("%%r-%p-%", 'r'));
}

static void test_files_of_ranks(void **state)
{
    in_child(write_for_a_rank);
    assert_int_equal(unlink(in_folder("r-0.json")), 0);
}

static void expect_empty_folder(void)
{
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void be_killed(struct spw_writer *writer)
{
    spw_write_flush(writer); /* something is in the file */
    raise(SIGKILL);
}

/* Nothing is left when a process is killed while it writes, on a file system that has files without
 * a name, as that of /tmp has here. */
static void test_killed_while_writing(void **state)
{
    int fd = open(folder, O_WRONLY | O_TMPFILE, 0600), status = 0;
    pid_t child;

    if (fd < 0) {
        skip();
    }
    close(fd);
    child = fork();
    if (child == 0) {
        spw_stats_extend(be_killed);
        (void)spw_stats_write(start());
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    expect_empty_folder();
}

/* Nothing is left when the file system is full, with or without files that have no name. */
static void write_too_much(void)
{
    const struct rlimit little = {.rlim_cur = 100, .rlim_max = 100};
    struct spw_stats *stats = start();

    redirect_errors("/dev/null");
    signal(SIGXFSZ, SIG_DFL); /* it would end the process */
    CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0);
    CHECK(!spw_stats_write(stats));
}

static void write_too_much_by_name(void)
{
    no_nameless = true;
    write_too_much();
}

static void test_full(void **state)
{
    in_child(write_too_much);
    expect_empty_folder();
    in_child(write_too_much_by_name);
    expect_empty_folder();
}

/* The finished file cannot get its name. */
static void write_at_a_folder(void)
{
    struct spw_stats *stats = start();
    char with_pid[160];

    redirect_errors("/dev/null");
    write_text(in_folder("s.json"), "theirs");
    snprintf(with_pid, sizeof(with_pid), "%s.%d", in_folder("s.json"), (int)getpid());
    CHECK(mkdir(with_pid, 0700) == 0);
    CHECK(!spw_stats_write(stats));
    CHECK(rmdir(with_pid) == 0);
    CHECK(unlink(in_folder("s.json")) == 0);
}

static void test_name_cannot_be_had(void **state)
{
    in_child(write_at_a_folder);
    expect_empty_folder();
}

/* A file system without files that have no name. */
static void write_by_name(void)
{
    no_nameless = true;
    write_twice();
}

static void write_without_links(void)
{
    no_links = true;
    write_twice();
}

static void test_other_file_systems(void **state)
{
    in_child(write_by_name);
    assert_int_equal(unlink(in_folder("s.json")), 0);
    expect_empty_folder();
    in_child(write_without_links);
    assert_int_equal(unlink(in_folder("s.json")), 0);
    expect_empty_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_ranks),
        cmocka_unit_test(test_killed_while_writing),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_name_cannot_be_had),
        cmocka_unit_test(test_other_file_systems),
    };
    int failed;

    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
