/* Flags of the commands that start a program, made from the table of options (common/options.def).
 *
 * An option's flag is its name without SPILLWAY_ (SPILLWAY_SIM_ for the simulated GPU), in lower
 * case with dashes. If two options would have the same flag (SPILLWAY_LOG and SPILLWAY_SIM_LOG),
 * the flag of the simulated GPU keeps its sim-. A flag sets the variable for the started program,
 * so it takes precedence over the user's variable. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/options.h"

enum { SPW_CLI_FLAG_NAME = 64 };

/* The commands that start a program; all but `run` use the simulated GPU. */
enum spw_cli_starter { SPW_CLI_RUN, SPW_CLI_SIM, SPW_CLI_FIT, SPW_CLI_STARTERS };

/* The command line of a command that starts a program. */
struct spw_cli_flags {
    char **command;              /* the program and its arguments; NULL when there is none */
    enum spw_option pool_option; /* the last flag of the pool that was given; SPW_OPT_COUNT: none */
    bool policy;                 /* --policy */
    bool no_pool;
    bool compare;
    bool verbose;       /* sets SPILLWAY_SUMMARY to on, unless the user has set it */
    bool list_profiles; /* --profile list */
    bool help;
    const char *gpus; /* of `fit`: names, separated by commas; NULL: all */
    const char *vary; /* of `fit`: NAME=VALUE,...; NULL: nothing */
};

/* Parses the arguments after argv[0], the command's name, up to `--` or the first operand, and sets
 * the variables. False, with one line on stderr, on bad usage. */
bool spw_cli_flags_parse(int argc, char **argv, enum spw_cli_starter starter,
                         struct spw_cli_flags *ret_flags);

/* Parses likewise, and prints `help` and the flags if they are asked for. A missing program is bad
 * usage. Returns the exit code for bad usage and for help; -1 if the command goes on. */
int spw_cli_flags_read(int argc, char **argv, enum spw_cli_starter starter, const char *help,
                       struct spw_cli_flags *ret_flags);

/* The flag of an option, without dashes; "" for SPILLWAY itself, which has none. */
const char *spw_cli_flag_name(enum spw_option option, char name[SPW_CLI_FLAG_NAME]);

/* Prints the flags for --help, in groups. */
void spw_cli_flags_print(FILE *out, enum spw_cli_starter starter);
