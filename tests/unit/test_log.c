#include "system/log.h"
#include "common/utf8.h"

#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static char folder[] = "/tmp/spillway-log-XXXXXX";
static char errors[64];
static char log_file[64];
static const char *log_setting;
static void (*log_body)(void);

static void set_up_and_log(void)
{
    redirect_errors(errors);
    setenv("SPILLWAY_LOG", log_setting, 1);
    spw_log_init();
    log_body();
}

/* Runs `body` with the log set up as `setting` says, which is done once per process. */
static void with_log(const char *setting, void (*body)(void))
{
    unlink(log_file);
    log_setting = setting;
    log_body = body;
    in_child(set_up_and_log);
}

static void say_all(void)
{
    spw_log(SPW_LOG_ERROR, "an error %d", 1);
    spw_log(SPW_LOG_INFO, "news %s", "two");
    spw_log(SPW_LOG_DEBUG, "details");
    spw_log_always("announced");
}

static void test_levels(void **state)
{
    with_log("", say_all);
    assert_string_equal(content(errors), "spillway: an error 1\nspillway: announced\n");
    with_log("info", say_all);
    assert_string_equal(content(errors),
                        "spillway: an error 1\nspillway: news two\nspillway: announced\n");
    with_log("debug", say_all);
    assert_string_equal(content(errors), "spillway: an error 1\nspillway: news two\n"
                                         "spillway: details\nspillway: announced\n");
}

static void test_file(void **state)
{
    char setting[128];

    snprintf(setting, sizeof(setting), "info:%s", log_file);
    with_log(setting, say_all);
    assert_string_equal(content(log_file), "spillway: an error 1\nspillway: news two\n");
    assert_string_equal(content(errors), "spillway: announced\n");
}

static void nothing(void)
{
}

/* A link that another user placed in a shared folder does not choose the file that is written. */
static void test_link_of_another_user(void **state)
{
    enum { NOBODY = 65534 };
    char setting[128], victim[64];

    if (geteuid() != 0) {
        skip();
    }
    snprintf(victim, sizeof(victim), "%s/victim", folder);
    snprintf(setting, sizeof(setting), "info:%s/link", folder);
    assert_int_equal(symlink("victim", setting + strlen("info:")), 0);
    assert_int_equal(lchown(setting + strlen("info:"), NOBODY, NOBODY), 0);
    assert_int_equal(chmod(folder, 0777), 0); /* with the sticky bit the system may refuse first */
    with_log(setting, say_all);
    assert_int_equal(access(victim, F_OK), -1);
    assert_non_null(strstr(content(errors), "of another user); logging to stderr\n"));
    assert_non_null(strstr(content(errors), "spillway: news two\n"));
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(unlink(setting + strlen("info:")), 0);
}

static void test_trouble_is_reported(void **state)
{
    with_log("info:/does/not/exist", nothing);
    assert_string_equal(content(errors),
                        "spillway: SPILLWAY_LOG: cannot open /does/not/exist: No such file or "
                        "directory; logging to stderr\n");
    with_log("loud", nothing);
    assert_string_equal(content(errors),
                        "spillway: SPILLWAY_LOG=loud: not one of error, info, debug, with an "
                        "optional :PATH; using the default\n");
}

static void close_everything_then_say(void)
{
    char path[64];
    int fds[300];

    assert_int_equal(syscall(__NR_close_range, 3, ~0U, 0), 0);
    snprintf(path, sizeof(path), "%s/other", folder);
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
        fds[i] = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    spw_log(SPW_LOG_ERROR, "still here");
}

/* The number of our log file may by now belong to a file of the program. */
static void test_recycled_descriptor_is_not_written_to(void **state)
{
    char setting[128];
    char path[64];

    snprintf(setting, sizeof(setting), "error:%s", log_file);
    with_log(setting, close_everything_then_say);
    snprintf(path, sizeof(path), "%s/other", folder);
    assert_string_equal(content(path), "");
    assert_string_equal(content(errors), "spillway: still here\n");
    unlink(path);
}

static void say_beyond_the_limit(void)
{
    const struct rlimit limit = {40, 40};

    (void)signal(SIGXFSZ, SIG_DFL); /* it would end the process */
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    spw_log(SPW_LOG_ERROR, "short");
    spw_log(SPW_LOG_ERROR, "longer than the rest");
}

/* A line that the log file does not take is not lost. */
static void test_file_that_may_not_grow(void **state)
{
    char setting[128];

    snprintf(setting, sizeof(setting), "error:%s", log_file);
    with_log(setting, say_beyond_the_limit);
    assert_string_equal(content(log_file), "spillway: short\n");
    assert_string_equal(content(errors), "spillway: longer than the rest\n");
}

static void say_too_much(void)
{
    char much[5000];

    memset(much, 'x', sizeof(much) - 1);
    much[sizeof(much) - 1] = '\0';
    spw_log_always("%s", much);
    spw_log_always("next");
}

static void test_long_line_is_cut(void **state)
{
    const char *text;

    with_log("", say_too_much);
    text = content(errors);
    assert_int_equal(strcspn(text, "\n"), 1023);
    assert_string_equal(strchr(text, '\n'), "\nspillway: next\n");
}

static void say_names(void)
{
    char much[2000];

    spw_log_always("%s by %s", "a\033[2J\nspillway: forged",
                   "\xE2\x80\xAE"
                   "caf\xC3\xA9");
    for (size_t i = 0; i + 2 < sizeof(much); i += 2) {
        memcpy(much + i, "\xC3\xA9", 3);
    }
    spw_log_always("%s", much);
    spw_log_always("x%s", much); /* one of the two is cut inside a character */
}

/* Nothing in a name may act on the terminal, or look like a line of its own. */
static void test_names_are_made_plain(void **state)
{
    static const char first[] = "spillway: a?[2J?spillway: forged by ?caf\xC3\xA9\n";
    const char *text;

    with_log("", say_names);
    text = content(errors);
    assert_int_equal(strncmp(text, first, strlen(first)), 0);
    for (size_t lines = 0; lines < 3; lines += *text++ == '\n') {
        assert_true(spw_utf8_length(text) > 0);
        text += spw_utf8_length(text) - 1;
    }
    assert_string_equal(text, "");
}

static void say_and_keep_errno(void)
{
    errno = ENOTTY;
    close(STDERR_FILENO);
    spw_log_always("into the void");
    spw_log(SPW_LOG_ERROR, "into the void");
    if (errno != ENOTTY) {
        _exit(1);
    }
}

static void test_errno_is_kept(void **state)
{
    with_log("", say_and_keep_errno);
}

static int set_up(void **state)
{
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(errors, sizeof(errors), "%s/errors", folder);
    snprintf(log_file, sizeof(log_file), "%s/log", folder);
    return 0;
}

static int tear_down(void **state)
{
    unlink(errors);
    unlink(log_file);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_trouble_is_reported),
        cmocka_unit_test(test_link_of_another_user),
        cmocka_unit_test(test_recycled_descriptor_is_not_written_to),
        cmocka_unit_test(test_file_that_may_not_grow),
        cmocka_unit_test(test_long_line_is_cut),
        cmocka_unit_test(test_names_are_made_plain),
        cmocka_unit_test(test_errno_is_kept),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
