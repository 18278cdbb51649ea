/* What changes of the script would save, as far as the lifetimes of its memory tell. One thread. */
#pragma once

#include "cli/advise/history.h"

/* Prints them to stdout: nothing when there is nothing to say. */
void spw_cli_advise_changes_print(const struct spw_cli_advise_history *history);
