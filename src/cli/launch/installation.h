/* Finds the files that are installed with the command. No locking. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Finds the file `name` ("libspillway.so", "sim/libcuda.so.1") next to the command or in the
 * library folder of the installation. If the file is missing, or if its path cannot be part of
 * LD_PRELOAD, writes one line for `command` to stderr and returns false. */
bool spw_cli_installation_find(const char *command, const char *name, char ret_path[PATH_MAX]);

/* Finds the path of the running command. If the path is not known, sets errno and returns false.
 * This happens if /proc is not mounted and the command has been moved. */
bool spw_cli_installation_self(char ret_path[PATH_MAX]);
