/* The answer of `spillway advise` for a command. Runs the command with ample memory and within
 * the budget, makes plans, and writes the best policy. One thread. */
#pragma once

#include "cli/advise/settings.h"

/* Returns the exit code. Writes lines to stdout and stderr. */
int spw_cli_advise_on_command(struct spw_cli_advise_settings *settings, char **arguments);
