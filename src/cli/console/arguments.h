/* Parses command lines. The parser stores the value of each option where the option's row says to
 * store it, and reports errors.
 *
 * An option is written `--name`, `--name VALUE` or `--name=VALUE`. Its name must not be
 * abbreviated. `--` ends the options. Every command accepts --help and -h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct spw_cli_arguments;
struct spw_cli_option;

/* Stores arguments->value, the value of arguments->option, in arguments->settings. If the value is
 * not usable, writes a line to stderr and returns false. */
typedef bool spw_cli_take(const struct spw_cli_arguments *arguments);

/* An option or an operand. One of the members `given`, `text`, `number` and `take` is set and
 * receives the value. */
struct spw_cli_option {
    const char *name;   /* "": the next operand; NULL: the end of the list */
    bool *given;        /* set to true if the option is given; the option has no value */
    const char **text;  /* receives the value */
    size_t *number;     /* receives the value, a whole number of at most a million */
    spw_cli_take *take; /* called with the value; for the last operand, called again for each
                         * further operand */
    int key;            /* for `take` */
};

/* A command line. The caller sets the members above the empty line. */
struct spw_cli_arguments {
    const char *command; /* for messages */
    int argc;
    char **argv; /* parsed from argv[1] */
    const struct spw_cli_option *options;
    const char *other_command; /* another command, which accepts other_options; NULL: none */
    const struct spw_cli_option *other_options; /* options of other_command; only for messages */
    bool stops_at_operand;                      /* parsing stops at the first operand */
    void *settings;                             /* for `take` */

    const struct spw_cli_option *option; /* for `take` */
    const char *value;                   /* the option's value */
    int next;                            /* index of the first argument that is not parsed */
    int operands;                        /* number of operands so far */
    bool ended, helps;                   /* `--` was read; --help was read */
};

/* Parses the arguments. If the usage is wrong, writes a line to stderr and returns false. */
bool spw_cli_arguments_parse(struct spw_cli_arguments *arguments);

/* Parses all arguments of the command argv[0]. Prints `help` if the user asks for it. Returns the
 * exit code if the usage is wrong or if help was printed, and -1 if the command can proceed. */
int spw_cli_arguments_read(int argc, char **argv, const struct spw_cli_option *options,
                           const char *help, void *settings);

/* Both functions report wrong usage: they write a line to stderr that mentions the command's
 * --help. spw_cli_bad_usage returns SPW_CLI_EXIT_USAGE. spw_cli_arguments_unexpected reports an
 * unexpected operand and returns false. */
int spw_cli_bad_usage(const char *command, const char *text);
bool spw_cli_arguments_unexpected(const struct spw_cli_arguments *arguments);
