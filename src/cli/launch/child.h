/* Runs the program of `run` and `sim` as a child process with this process's environment. One
 * thread; one child at a time. */
#pragma once

#include <stdbool.h>

/* Runs `arguments` (NULL-terminated, searched in PATH), forwards signals to it and waits for it.
 * Returns its exit code, or a code of enum spw_cli_exit with one line of `command` on stderr when
 * it cannot be started. *ret_started, unless NULL, is true when it was started. */
int spw_cli_launch(const char *command, char **arguments, bool *ret_started);

/* Says in words why spillway is not in the program that was launched last, after its name: "true is
 * static, ..."; "" when it is, as far as its file tells. Valid until the next launch. */
const char *spw_cli_launch_lack(void);

/* Calls `tick` about every `seconds` while a program runs, from now on; on this thread, outside
 * signal handlers. */
void spw_cli_launch_watch(unsigned seconds, void (*tick)(void));

/* From now on a program that still runs so many seconds after Ctrl-C (SIGINT) is killed, with all
 * the processes of the run (members.h), once none of them works any more; a second Ctrl-C kills it
 * at once. */
void spw_cli_launch_end_within(unsigned seconds);

/* Where lines about that go, a descriptor; stderr unless a program's output is not shown. */
void spw_cli_launch_speak_on(int fd);

/* So many for runs on the simulated GPU. */
enum { SPW_CLI_LAUNCH_GRACE = 10 };

/* The exit code to report for a program that ended with `code`: 130 if that is a failure after
 * Ctrl-C, which some programs report in a way of their own (torchrun ends with 1). */
int spw_cli_launch_code(int code);

/* True if this process was asked to end, by SIGHUP, SIGINT, SIGQUIT or SIGTERM, while a program
 * ran; *ret_number is then the last such signal. */
bool spw_cli_launch_was_interrupted(int *ret_number);
