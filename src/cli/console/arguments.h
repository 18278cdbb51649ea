/* Parses command lines: puts values into the places of their options, and reports errors.
 *
 * Options are written `--name`, `--name VALUE` or `--name=VALUE`; names are not abbreviated. `--`
 * ends them. Every command has --help and -h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct spw_cli_arguments;
struct spw_cli_option;

/* Takes arguments->value, of arguments->option, into arguments->settings. False, after a line on
 * stderr, if it is not usable. */
typedef bool spw_cli_take(const struct spw_cli_arguments *arguments);

/* An option or an operand, with one place for its value. */
struct spw_cli_option {
    const char *name;   /* "": the next operand; NULL ends a list */
    bool *given;        /* becomes true: the option has no value */
    const char **text;  /* receives the value */
    size_t *number;     /* receives the value, a whole number of at most a million */
    spw_cli_take *take; /* gets the value; that of the last operand also gets all later ones */
    int key;            /* for `take` */
};

/* A command line. The caller sets the first group. */
struct spw_cli_arguments {
    const char *command; /* for messages */
    int argc;
    char **argv; /* parsed from argv[1] */
    const struct spw_cli_option *options;
    const char *other_command;                  /* the command that has other_options; NULL: none */
    const struct spw_cli_option *other_options; /* of other_command, for messages */
    bool stops_at_operand;                      /* the first operand ends the parsed arguments */
    void *settings;                             /* for `take` */

    const struct spw_cli_option *option; /* for `take` */
    const char *value;                   /* the option's value */
    int next;                            /* index of the first argument that is not parsed */
    int operands;                        /* number of operands so far */
    bool ended, helps;                   /* `--` was read; --help was read */
};

/* Parses the arguments. False, after a line on stderr, for bad usage. */
bool spw_cli_arguments_parse(struct spw_cli_arguments *arguments);

/* Parses all arguments of a command, argv[0], and prints `help` if it is asked for. Returns the
 * exit code for bad usage and for help; -1 if the command goes on. */
int spw_cli_arguments_read(int argc, char **argv, const struct spw_cli_option *options,
                           const char *help, void *settings);

/* Write a line on stderr that names the command's help. The first function returns
 * SPW_CLI_EXIT_USAGE. The second is for an unexpected operand, and returns false. */
int spw_cli_bad_usage(const char *command, const char *text);
bool spw_cli_arguments_unexpected(const struct spw_cli_arguments *arguments);
