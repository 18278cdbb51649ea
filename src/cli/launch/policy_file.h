/* Policy files, by path or by the name of an installed policy. Errors are lines on stderr. One
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

enum { SPW_CLI_POLICIES = 16, SPW_CLI_POLICY_NAME = 64 };

/* Writes the names of the installed policies that move memory, sorted; returns their number. */
size_t spw_cli_policy_installed(char ret_names[SPW_CLI_POLICIES][SPW_CLI_POLICY_NAME]);

/* Loads a policy; the caller destroys it. NULL when it is not valid, with every error on stderr as
 * "NAME:LINE:COLUMN: ERROR, EXPECTED". */
struct spw_policy *spw_cli_policy_open(const char *name);

/* Checks the file in SPILLWAY_POLICY before `run`, `sim` or `fit` starts a program, and makes its
 * path absolute. Returns SPW_CLI_EXIT_OK, or the exit code of the command. An invalid file from the
 * variable is reported in one line, and the variable is removed, so that the program runs with the
 * default policy. With SPILLWAY_POLICY_STRICT, or if the file is from the flag (`by_flag`), every
 * error is reported, and the program does not start. */
int spw_cli_policy_prepare(const char *command, bool by_flag);
