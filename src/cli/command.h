/* The spillway command: one file per subcommand, dispatched by the table in main.c.
 *
 * Everything runs on one thread unless a file says otherwise. Results go to stdout; complaints, and
 * everything of `run` and `sim`, whose stdout is the program's, go to stderr. */
#pragma once

#include <stdbool.h>

/* Exit codes of the contract; those of the program itself are passed through. */
enum spw_exit {
    SPW_EXIT_OK = 0,
    SPW_EXIT_FINDINGS = 1,
    SPW_EXIT_USAGE = 2,
    SPW_EXIT_CANNOT_START = 125,
    SPW_EXIT_NOT_FOUND = 127,
    SPW_EXIT_SIGNAL = 128, /* plus its number */
};

/* The subcommands. argv[0] is the subcommand's name; the result is the exit code. */
int spw_command_run(int argc, char **argv);
int spw_command_sim(int argc, char **argv);
int spw_command_options(int argc, char **argv);
int spw_command_policy(int argc, char **argv);
int spw_command_sites(int argc, char **argv);
int spw_command_top(int argc, char **argv);
int spw_command_doctor(int argc, char **argv);
int spw_command_door(int argc, char **argv);

/* One line on stderr: "spillway: <subcommand>: <text>". */
void spw_complain(const char *subcommand, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether `argument` is one of -h and --help. */
bool spw_is_help(const char *argument);
