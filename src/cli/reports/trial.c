#include "cli/reports/trial.h"

#include "cli/console/messages.h"
#include "cli/launch/child.h"
#include "cli/launch/run_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const variables[SPW_CLI_TRIAL_VARIABLES] = {
    "LD_PRELOAD",        "LD_LIBRARY_PATH",      "SPILLWAY_SIM_MEMORY",
    "SPILLWAY_LIMIT",    "SPILLWAY_STATS",       "SPILLWAY_SPILL",
    "SPILLWAY_GROWTH",   "SPILLWAY_SIM_PROFILE", "SPILLWAY_SIM_OVERHEAD",
    "SPILLWAY_RECORD",   "SPILLWAY_RECORD_USES", "SPILLWAY_RECORD_SIZE",
    "SPILLWAY_POLICY",   "SPILLWAY_HOST_LIMIT",  "SPILLWAY_SIM_TIME",
    "SPILLWAY_SIM_LINK",
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

/* Redirects the standard streams to /dev/null; restore_output undoes it. */
static void silence_output(int saved[3])
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
        if (null >= 0) {
            dup2(null, i);
        }
    }
    close(null);
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

/* By a signal to this process, or to the program alone. */
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

bool spw_cli_trials_run(struct spw_cli_trials *trials, const struct spw_cli_trial *trial,
                        struct spw_cli_sim_result *ret_result, int *ret_code)
{
    bool started = false;
    int saved[3];

    *ret_result = (struct spw_cli_sim_result){0};
    *ret_code = SPW_CLI_EXIT_CANNOT_START;
    set_variables(trials, trial);
    if (!trials->prepare(trials->command, trial->with_pool) ||
        !spw_cli_run_directory_create(trials->command)) {
        return false;
    }
    if (trial->silent) {
        silence_output(saved);
    }
    *ret_code = spw_cli_launch_code(spw_cli_launch(trials->command, trial->arguments, &started));
    note_interrupt(trials, *ret_code);
    spw_cli_run_directory_finish();
    if (trial->silent) {
        restore_output(saved);
        if (!started) {
            spw_cli_complain(trials->command, "%s: %s", trial->arguments[0],
                             *ret_code == SPW_CLI_EXIT_NOT_FOUND ? "not found"
                                                                 : "cannot be started");
        }
    }
    spw_cli_sim_result_read(ret_result);
    spw_cli_run_directory_remove();
    return started;
}
