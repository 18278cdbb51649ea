#include "cli/launch/child.h"

#include "cli/console/messages.h"
#include "cli/launch/run_directory.h"
#include "stats/exit.h"
#include "stats/stats.h"

#include "child.h"
#include "valgrind.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char folder[] = "/tmp/spillway-launch-XXXXXX";
static char errors[64];

#define LAUNCH(...) spw_cli_launch("run", (char *[]){__VA_ARGS__, NULL}, NULL)

/* Checks an exit code of spw_cli_launch and the messages. */
static void expect(int code, int expected_code, const char *expected_errors)
{
    CHECK(code == expected_code);
    CHECK(strcmp(content(errors), expected_errors) == 0);
}

static void write_script(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
}

static void codes(void)
{
    redirect_errors(errors);
    CHECK(chdir(folder) == 0);
    write_script("no-interpreter", "#!/no/such/thing\n", 0700);
    write_script("not-executable", "", 0600);
    expect(LAUNCH("true"), 0, "");
    expect(LAUNCH("sh", "-c", "exit 7"), 7, "");
    expect(LAUNCH("sh", "-c", "kill -TERM $$"), 128 + SIGTERM, "");
    expect(LAUNCH("sh", "-c", "kill -KILL $$"), 128 + SIGKILL, "");
    expect(LAUNCH("no-such-command"), SPW_CLI_EXIT_NOT_FOUND,
           "spillway: run: no-such-command: command not found\n");
    redirect_errors(errors);
    expect(LAUNCH("./no-such-file"), SPW_CLI_EXIT_NOT_FOUND,
           "spillway: run: ./no-such-file: no such file\n");
    if (!is_under_valgrind()) { /* which dies itself when a script's interpreter is missing */
        redirect_errors(errors);
        expect(LAUNCH("./no-interpreter"), SPW_CLI_EXIT_CANNOT_START,
               "spillway: run: ./no-interpreter: cannot be started: its interpreter is missing\n");
    }
    redirect_errors(errors);
    expect(LAUNCH("./not-executable"), SPW_CLI_EXIT_CANNOT_START,
           "spillway: run: ./not-executable: cannot be started: Permission denied\n");
    unlink("no-interpreter");
    unlink("not-executable");
}

static void test_exit_codes(void **state)
{
    in_child(codes);
}

/* The program signals this process, waits for the same signal, and exits with 42. */
static void signals(void)
{
    static const char *const names[] = {"TERM", "INT", "HUP", "QUIT", "USR1", "USR2"};
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

    redirect_errors(errors);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char script[256];

        signal(numbers[i], SIG_DFL);
        snprintf(script, sizeof(script),
                 "trap 'exit 42' %s; kill -%s $PPID; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; "
                 "done; exit 1",
                 names[i], names[i]);
        expect(LAUNCH("bash", "-c", script), 42, "");
    }
}

static void test_signals_are_passed_on(void **state)
{
    in_child(signals);
}

static void ignored(void)
{
    redirect_errors(errors);
    signal(SIGHUP, SIG_IGN);
    expect(LAUNCH("sh", "-c", "kill -HUP $PPID; kill -HUP $$; exit 3"), 3, "");
    signal(SIGHUP, SIG_DFL);
    expect(LAUNCH("sh", "-c", "kill -HUP $$; exit 3"), 128 + SIGHUP, "");
}

static void test_ignored_signals_stay_ignored(void **state)
{
    in_child(ignored);
}

static const char *statistics(void)
{
    static char path[64];

    snprintf(path, sizeof(path), "%s/s.json", folder);
    return path;
}

/* A program under spillway that ends with three allocations counted. */
static void play_program(bool exits)
{
    struct spw_stats *stats = spw_stats_create();

    spw_stats_start(stats, "auto", "a test", statistics(), SPW_SUMMARY_ON, 1);
    spw_counter_set(&stats->devices[0].counters.allocs, 3);
    if (exits) {
        exit(0);
    }
    raise(SIGKILL);
}

static void finish(bool exits)
{
    char run_folder[256];
    const char *text;
    pid_t child;

    CHECK(chdir(folder) == 0);
    redirect_errors(errors);
    unlink("s.json");
    CHECK(spw_cli_run_directory_create("run"));
    snprintf(run_folder, sizeof(run_folder), "%s", getenv("SPILLWAY_RUN_DIR"));
    CHECK(access(run_folder, W_OK) == 0);
    child = fork();
    if (child == 0) {
        play_program(exits);
    }
    waitpid(child, NULL, 0);
    CHECK(exits == (access("s.json", F_OK) == 0));
    spw_cli_run_directory_finish();
    spw_cli_run_directory_remove();
    CHECK(access(run_folder, F_OK) != 0);
    CHECK(strstr(content("s.json"), "\"allocs\": 3") != NULL);
    text = content(errors);
    CHECK(strstr(text, "3 allocations") != NULL);
    CHECK(strstr(strstr(text, "3 allocations") + 1, "3 allocations") == NULL); /* once */
    unlink("s.json");
}

static void finish_killed(void)
{
    finish(false);
}

static void finish_exited(void)
{
    finish(true);
}

static void test_finishes_for_the_dead(void **state)
{
    in_child(finish_killed);
    in_child(finish_exited);
}

/* A process that still runs writes its statistics itself, later. */
static void leave_running(void)
{
    int ready[2];
    pid_t child;
    char byte;

    CHECK(chdir(folder) == 0);
    redirect_errors(errors);
    CHECK(spw_cli_run_directory_create("run"));
    CHECK(pipe(ready) == 0);
    child = fork();
    if (child == 0) {
        struct spw_stats *stats = spw_stats_create();

        spw_stats_start(stats, "auto", "a test", statistics(), SPW_SUMMARY_ON, 1);
        spw_counter_set(&stats->devices[0].counters.allocs, 3);
        CHECK(write(ready[1], "x", 1) == 1);
        pause();
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    spw_cli_run_directory_finish();
    CHECK(access("s.json", F_OK) != 0);
    CHECK(strcmp(content(errors), "") == 0);
    spw_cli_run_directory_remove();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_leaves_the_living_alone(void **state)
{
    in_child(leave_running);
}

static int set_up(void **state)
{
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(errors, sizeof(errors), "%s/errors", folder);
    return 0;
}

static int tear_down(void **state)
{
    unlink(errors);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_signals_are_passed_on),
        cmocka_unit_test(test_ignored_signals_stay_ignored),
        cmocka_unit_test(test_finishes_for_the_dead),
        cmocka_unit_test(test_leaves_the_living_alone),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
