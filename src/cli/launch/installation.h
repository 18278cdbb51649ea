/* Finds the files that are installed with the command. No locking. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Finds `name` ("libspillway.so", "sim/libcuda.so.1") beside the command or in the library folder
 * of the installation. False, with one line of `command` on stderr, when it is missing, or when its
 * path cannot be part of LD_PRELOAD. */
bool spw_cli_installation_find(const char *command, const char *name, char ret_path[PATH_MAX]);

/* The path of the running command. False, with errno set, when it is not known: /proc is not
 * mounted and the command has been moved. */
bool spw_cli_installation_self(char ret_path[PATH_MAX]);
