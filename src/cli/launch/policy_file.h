/* Finds and loads policy files, by path or by the name of an installed policy. Errors are written
 * to stderr. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

enum { SPW_CLI_POLICIES = 16, SPW_CLI_POLICY_NAME = 64 };

/* Writes the sorted names of the installed policies, and returns their number. With `moving`, omits
 * those that move no memory. */
size_t spw_cli_policy_installed(bool moving, char ret_names[SPW_CLI_POLICIES][SPW_CLI_POLICY_NAME]);

/* Loads a policy. The caller destroys the result. If the policy is not valid, writes every error to
 * stderr as "NAME:LINE:COLUMN: ERROR, EXPECTED" and returns NULL. */
struct spw_policy *spw_cli_policy_open(const char *name);

/* Checks the file in SPILLWAY_POLICY before `run`, `sim` or `fit` starts a program, and makes its
 * path absolute. Returns SPW_CLI_EXIT_OK if the program can start, and otherwise the exit code of
 * the command. If the user named an invalid file with the flag (`by_flag`), or if
 * SPILLWAY_POLICY_STRICT is set, reports every error, and the program does not start. Otherwise
 * reports an invalid file in one line and removes the variable. The program then runs with the
 * default policy. */
int spw_cli_policy_prepare(const char *command, bool by_flag);
