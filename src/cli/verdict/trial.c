#include "cli/verdict/trial.h"

#include "cli/console/messages.h"
#include "cli/cudnn/choice.h"
#include "cli/cudnn/server.h"
#include "cli/launch/child.h"
#include "cli/launch/run_directory.h"
#include "common/utf8.h"
#include "system/clock.h"
#include "system/file_limit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The program's stderr is kept in a file only if files may have this size. */
enum { MOST_ERRORS = 1 << 30 };

static const char *const variables[SPW_CLI_TRIAL_VARIABLES] = {
    "LD_PRELOAD",        "LD_LIBRARY_PATH",         "SPILLWAY_SIM_MEMORY",
    "SPILLWAY_LIMIT",    "SPILLWAY_STATS",          "SPILLWAY_SPILL",
    "SPILLWAY_GROWTH",   "SPILLWAY_SIM_PROFILE",    "SPILLWAY_SIM_OVERHEAD",
    "SPILLWAY_RECORD",   "SPILLWAY_RECORD_USES",    "SPILLWAY_RECORD_SIZE",
    "SPILLWAY_POLICY",   "SPILLWAY_HOST_LIMIT",     "SPILLWAY_SIM_TIME",
    "SPILLWAY_SIM_LINK", "SPILLWAY_RECORD_MODULES", "SPILLWAY_SIM_RATES",
    SIM_CUDNN_LIBRARY,   "SPILLWAY_SIM_LINK_OUT",
};

static void set(const char *name, const char *value)
{
    if (value != NULL) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

void spw_cli_trials_begin(struct spw_cli_trials *trials, const char *command,
                          spw_cli_prepare *prepare)
{
    *trials = (struct spw_cli_trials){.command = command, .prepare = prepare};
    for (int i = 0; i < SPW_CLI_TRIAL_VARIABLES; i++) {
        const char *value = getenv(variables[i]);

        trials->values[i] = value != NULL ? strdup(value) : NULL;
    }
}

void spw_cli_trials_end(struct spw_cli_trials *trials)
{
    for (int i = 0; i < SPW_CLI_TRIAL_VARIABLES; i++) {
        free(trials->values[i]);
    }
}

/* Redirects stdin and stdout to /dev/null, and stderr to a file. Returns the descriptor of the
 * file. If the file cannot be created, redirects stderr to /dev/null and returns -1. restore_output
 * undoes the redirection. */
static int silence_output(int saved[3])
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int errors = spw_file_may_have(MOST_ERRORS) ? memfd_create("spillway", MFD_CLOEXEC) : -1;

    for (int i = 0; i < 3; i++) {
        int to = i == STDERR_FILENO && errors >= 0 ? errors : null;

        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
        if (to >= 0) {
            dup2(to, i);
        }
    }
    if (null >= 0) {
        close(null);
    }
    return errors;
}

/* Copies the file's last line that has a lower-case letter and is not from spillway. */
static void read_last_line(int errors, char *ret_line)
{
    char text[4096];
    off_t size = errors >= 0 ? lseek(errors, 0, SEEK_END) : 0;
    off_t from = size > (off_t)sizeof(text) - 1 ? size - (off_t)sizeof(text) + 1 : 0;
    ssize_t length = size > 0 ? pread(errors, text, sizeof(text) - 1, from) : 0;
    char *rest = text, *line;

    ret_line[0] = '\0';
    text[length > 0 ? length : 0] = '\0';
    while ((line = strsep(&rest, "\r\n")) != NULL) {
        line += strspn(line, " \t");
        if (strncmp(line, "spillway: ", strlen("spillway: ")) != 0 &&
            strpbrk(line, "abcdefghijklmnopqrstuvwxyz") != NULL) {
            (void)snprintf(ret_line, SPW_CLI_TRIAL_LINE, "%s", line);
        }
    }
    spw_utf8_plain(ret_line, /* keep */ "");
}

static void restore_output(const int saved[3])
{
    for (int i = 0; i < 3; i++) {
        if (saved[i] >= 0) {
            dup2(saved[i], i);
            close(saved[i]);
        }
    }
}

/* Notes the signal that ended a run, if it was sent to this process or only to the program. */
static void note_interrupt(struct spw_cli_trials *trials, int code)
{
    int number = code - SPW_CLI_EXIT_SIGNAL;

    if (spw_cli_launch_was_interrupted(&number) || number == SIGINT || number == SIGTERM ||
        number == SIGHUP || number == SIGQUIT) {
        trials->interrupt = number;
    }
}

static void set_variables(const struct spw_cli_trials *trials, const struct spw_cli_trial *trial)
{
    for (int i = 0; i < SPW_CLI_TRIAL_VARIABLES; i++) {
        set(variables[i], trials->values[i]);
    }
    for (size_t i = 0; i < trial->setting_count; i++) {
        set(trial->settings[i].name, trial->settings[i].value);
    }
}

const char *spw_cli_trials_place(const struct spw_cli_trials *trials, unsigned left,
                                 const char *how)
{
    static struct spw_cli_line line;

    line.text[0] = '\0';
    spw_cli_line_add(&line, "%u", trials->runs + 1);
    if (left > 0) {
        spw_cli_line_add(&line, " of %s%u", how, trials->runs + left);
    }
    if (left > 0 && trials->runs > 0) {
        spw_cli_line_add(&line, ", about %" PRIu64 " s",
                         trials->runs_ns / trials->runs * left / 1000000000 + 1);
    }
    return line.text;
}

bool spw_cli_trials_run(struct spw_cli_trials *trials, const struct spw_cli_trial *trial,
                        struct spw_cli_sim_result *ret_result, int *ret_code)
{
    bool started = false;
    int saved[3], errors = -1;
    uint64_t begin = spw_clock_ns();

    *ret_result = (struct spw_cli_sim_result){0};
    *ret_code = SPW_CLI_EXIT_CANNOT_START;
    set_variables(trials, trial);
    if (!trials->prepare(trials->command, trial->with_pool) ||
        !spw_cli_run_directory_create(trials->command)) {
        return false;
    }
    spw_cli_cudnn_server_start();
    if (trial->silent) {
        errors = silence_output(saved);
        spw_cli_launch_speak_on(saved[STDERR_FILENO]);
    }
    *ret_code = spw_cli_launch_code(spw_cli_launch(trials->command, trial->arguments, &started));
    note_interrupt(trials, *ret_code);
    spw_cli_run_directory_finish();
    if (trial->silent) {
        restore_output(saved);
        spw_cli_launch_speak_on(STDERR_FILENO);
        read_last_line(errors, trials->last_line);
        if (errors >= 0) {
            close(errors);
        }
        if (!started) {
            const char *lack = spw_cli_launch_lack();

            spw_cli_complain(trials->command, "%s: %s%s%s", trial->arguments[0],
                             *ret_code == SPW_CLI_EXIT_NOT_FOUND ? "not found"
                                                                 : "cannot be started",
                             *lack != '\0' ? ": " : "", lack);
        }
    }
    spw_cli_sim_result_read(/* real */ false, ret_result);
    spw_cli_run_directory_remove();
    trials->runs++;
    trials->runs_ns += spw_clock_ns() - begin;
    return started;
}
