/* Running the program: a child that inherits everything but what the launchers set. */
#pragma once

#include <stdbool.h>

/* Runs `command` (NULL-terminated, found by PATH), passes signals on to it, waits for it and
 * returns the exit code of the contract. `subcommand` speaks when it cannot be started;
 * *ret_started, unless NULL, tells whether it could. */
int spw_cli_launch(const char *subcommand, char **command, bool *ret_started);
