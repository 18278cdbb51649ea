/* Where the files that belong to the command are. No locking; results are copied out. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Finds `name` ("libspillway.so", "sim/libcuda.so.1") beside the command itself, or in the library
 * folder of an installation. False, with a complaint of `subcommand`, when it is not there or its
 * path cannot stand in a list of libraries. */
bool spw_cli_installation_find(const char *subcommand, const char *name, char ret_path[PATH_MAX]);

/* The path of the running command itself. */
bool spw_cli_installation_self(char ret_path[PATH_MAX]);
