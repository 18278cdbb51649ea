/* Runs the program of `run` and `sim` as a child process with this process's environment. One
 * thread; one child at a time. */
#pragma once

#include <stdbool.h>

/* Runs `arguments` (NULL-terminated, searched in PATH), forwards signals to it and waits for it.
 * Returns its exit code, or a code of enum spw_cli_exit with one line of `command` on stderr when
 * it cannot be started. *ret_started, unless NULL, is true when it was started. */
int spw_cli_launch(const char *command, char **arguments, bool *ret_started);
