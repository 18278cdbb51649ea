/* Reads the memory that a program used from a recording. One thread, one recording at a time. */
#pragma once

#include <stdbool.h>

#include "cli/usage/usage.h"

/* Fills *ret_usage, in which spw_cli_usage_load() has set the path, the rank and the kind of file.
 * False after a line on stderr; otherwise the caller frees it. */
bool spw_cli_usage_of_recording(const char *command, const char *path,
                                struct spw_cli_usage *ret_usage);
