/* Reads the memory that a program used from a recording or a statistics file. One thread, one
 * recording at a time. */
#pragma once

#include <stdbool.h>

#include "cli/usage/usage.h"

/* Reads a file of either kind. False after a line on stderr. The caller frees *ret_usage. */
bool spw_cli_usage_load(const char *command, const char *path, struct spw_cli_usage *ret_usage);
