/* Flags of the commands that start a program. They are generated from the table of options
 * (common/options.def).
 *
 * The flag of an option is the option's name in lower case, with dashes and without the prefix
 * SPILLWAY_ (for the simulated GPU, SPILLWAY_SIM_). If two options would have the same flag
 * (SPILLWAY_LOG and SPILLWAY_SIM_LOG), the flag of the simulated GPU keeps its sim-. A flag sets
 * the variable in the environment of the started program. It therefore takes precedence over a
 * variable that the user has set. One thread. */
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
    enum spw_option pool_option; /* of the last given flag of the pool; SPW_OPT_COUNT: none */
    bool policy;                 /* --policy */
    bool no_pool;
    bool compare;
    bool fit;           /* `run`: choose a policy if the program does not fit */
    bool verbose;       /* sets SPILLWAY_SUMMARY to on, unless the user has set it */
    bool list_profiles; /* --profile list */
    bool help, help_all;
    const char *report; /* `run`, `sim`: file of the page; NULL: none */
    bool open;          /* open the page */
    const char *gpus;   /* `fit`: names of GPUs, separated by commas; NULL: all GPUs */
    const char *vary;   /* `fit`: NAME=VALUE,...; NULL: nothing varies */
};

/* Parses the arguments up to `--` or the first operand, and sets the variables. argv[0] is the name
 * of the command. If the usage is wrong, writes one line to stderr and returns false. */
bool spw_cli_flags_parse(int argc, char **argv, enum spw_cli_starter starter,
                         struct spw_cli_flags *ret_flags);

/* Parses the arguments as spw_cli_flags_parse does. Prints `help` and the flags if the user asks
 * for help. Returns the exit code if help was printed, if the usage is wrong or if the program is
 * missing. Returns -1 if the command can proceed. */
int spw_cli_flags_read(int argc, char **argv, enum spw_cli_starter starter, const char *help,
                       struct spw_cli_flags *ret_flags);

/* Returns the flag of an option, without the leading dashes. Returns "" for the option SPILLWAY,
 * which has no flag. */
const char *spw_cli_flag_name(enum spw_option option, char name[SPW_CLI_FLAG_NAME]);

/* Prints the flags for --help-all, in groups. With `few`, prints those for --help. */
void spw_cli_flags_print(FILE *out, enum spw_cli_starter starter, bool few);
