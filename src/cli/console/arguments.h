/* Command lines, parsed by getopt_long(3), with the error messages of this command.
 *
 * Options are written `--name`, `--name VALUE` or `--name=VALUE`; names are not abbreviated. One
 * command line at a time, because getopt_long keeps its state in globals. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* Results of spw_cli_arguments_next that are not the `val` of an option. */
enum spw_cli_argument {
    SPW_CLI_ARGUMENT_END = -1,
    SPW_CLI_ARGUMENT_OPERAND = 1, /* an argument that is not an option */
    SPW_CLI_ARGUMENT_BAD = '?',   /* bad usage; one line on stderr names the error */
    SPW_CLI_ARGUMENT_HELP = 'h',  /* -h; give the row of --help the same `val` */
};

/* The row of --help in a list of options. */
#define SPW_CLI_HELP_OPTION                                                                        \
    {                                                                                              \
        "help", no_argument, NULL, SPW_CLI_ARGUMENT_HELP                                           \
    }

/* A command line that is being parsed. The caller sets the first group before the first call. */
struct spw_cli_arguments {
    const char *command; /* for messages */
    int argc;
    char **argv;                        /* parsed from argv[1] */
    const struct option *options;       /* ends with a row of zeros */
    const char *other_command;          /* the command that has other_options; NULL: none */
    const struct option *other_options; /* of other_command, for messages */
    bool stops_at_operand;              /* the rest from the first operand on is not parsed */

    const char *value; /* of the latest option, or the latest operand; NULL: none */
    int next;          /* index of the first argument that is not parsed yet */
    bool started, ended;
};

/* Parses the next argument. Returns the `val` of its option, or an enum spw_cli_argument. With
 * stops_at_operand the result at the first operand is END, and argv + next is the rest. */
int spw_cli_arguments_next(struct spw_cli_arguments *arguments);

/* Takes one argument of spw_cli_arguments_each(): `found` is the result of
 * spw_cli_arguments_next(), and never END or BAD. False, after a line on stderr, if the argument is
 * not usable. */
typedef bool spw_cli_take_argument(const struct spw_cli_arguments *from, int found, void *settings);

/* Parses a whole command line: calls `take` with each argument and with `settings`. `options` ends
 * with a row of zeros. False, after a line on stderr, for bad usage. */
bool spw_cli_arguments_each(int argc, char **argv, const struct option *options,
                            spw_cli_take_argument *take, void *settings);

/* Writes a line on stderr about an unexpected operand: `arguments->value`. */
void spw_cli_arguments_unexpected(const struct spw_cli_arguments *arguments);

/* Takes the value of the option `name`, a whole number of at most a million. False, after a line on
 * stderr, for any other value. */
bool spw_cli_arguments_take_number(const struct spw_cli_arguments *arguments, const char *name,
                                   size_t *ret_number);

/* Takes the only operand of a command; *operand points to its text in argv. False, after a line on
 * stderr, for a second operand. */
bool spw_cli_arguments_take_one(const struct spw_cli_arguments *arguments, const char **operand);
