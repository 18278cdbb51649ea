/* Flags of the launchers: the options of the table in another dress.
 *
 * An option's flag is its name without SPILLWAY_, and for options of the simulated GPU without
 * SIM_, in lower case with dashes. Where that would make two options one flag (SPILLWAY_LOG and
 * SPILLWAY_SIM_LOG) the simulated GPU's keeps its sim-. A flag is written `--name VALUE` or
 * `--name=VALUE` and becomes the variable of the program that is launched, so that it wins over
 * the same variable of the environment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/options.h"

enum { SPW_CLI_FLAG_NAME = 64 };

/* What was on a launcher's command line. */
struct spw_cli_flags {
    char **command;              /* the program and its arguments; NULL when there is none */
    enum spw_option pool_option; /* the last flag that was one of the pool's, else SPW_OPT_COUNT */
    bool no_pool;
    bool compare;
    bool help;
};

/* Parses the arguments behind argv[0], the subcommand's name, up to `--` or the first that is no
 * flag, and sets the variables. `sim` says which options are flags here. False, with one line on
 * stderr, on bad usage. */
bool spw_cli_flags_parse(int argc, char **argv, bool sim, struct spw_cli_flags *ret_flags);

/* The flag of an option, without dashes; "" for SPILLWAY itself, which has none. */
const char *spw_cli_flag_name(enum spw_option option, char name[SPW_CLI_FLAG_NAME]);

/* Prints one line per flag of the launcher, for --help. */
void spw_cli_flags_print(FILE *out, bool sim);
