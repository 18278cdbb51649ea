/* Estimates the memory that changes of the script would save, by blocks' lifetimes. One thread. */
#pragma once

#include "cli/advise/history.h"

/* Prints the changes to stdout; nothing without a change that saves enough. */
void spw_cli_advise_changes_print(const struct spw_cli_advise_history *history);
