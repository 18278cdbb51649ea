/* Policy files as the command meets them: by path, or by the name of one that ships with spillway;
 * complaints as lines on stderr. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "policy/policy.h"

/* The path of the policy that `name` means: the shipped one of that name, else the name itself. */
const char *spw_cli_policy_path(const char *name, char buffer[PATH_MAX]);

/* Loads the policy that `name` means. NULL, with every complaint on stderr as
 * "NAME:LINE:COLUMN: what, expected", when it cannot be used. */
struct spw_policy *spw_cli_policy_open(const char *name);

/* What `run` and `sim` do with SPILLWAY_POLICY before they start a program: checks the file, says
 * in one line what is wrong with it, and makes its path
 * absolute for the program; a bad one is taken away from it. False when the program must not be
 * started, because SPILLWAY_POLICY_STRICT is on and the file is bad. */
bool spw_cli_policy_prepare(const char *subcommand);
