/* Exit codes and error messages of the command.
 *
 * Results go to stdout; error messages go to stderr. `run` and `sim` write everything to stderr,
 * because stdout belongs to the program that they start. One thread. */
#pragma once

#include <stdio.h>

/* Exit codes of the command. `run` and `sim` pass on those of the program. */
enum spw_cli_exit {
    SPW_CLI_EXIT_OK = 0,
    SPW_CLI_EXIT_FINDINGS = 1,
    SPW_CLI_EXIT_USAGE = 2,
    SPW_CLI_EXIT_CANNOT_START = 125,
    SPW_CLI_EXIT_NOT_FOUND = 127,
    SPW_CLI_EXIT_SIGNAL = 128, /* plus the signal's number */
};

/* Writes one line to stderr: "spillway: <command>: <text>". */
void spw_cli_complain(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints text with names of unknown origin. Control characters are replaced, except newlines at the
 * beginning and the end of the format, so that no name can forge a line. */
void spw_cli_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
