/* A varied number of a command: --vary NAME=VALUE,..., where VALUE may be a range, as 1..16. One
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SPW_CLI_FIT_VALUES = 64 };

struct spw_cli_fit_variation {
    char *name;                       /* NULL: nothing is varied, and there is one value */
    char *values[SPW_CLI_FIT_VALUES]; /* in the order given */
    size_t count;
};

/* Reads the text; NULL: nothing is varied. The command must contain {NAME}. False, with one line of
 * `command` on stderr, when the text is not usable. */
bool spw_cli_fit_variation_read(const char *command, const char *text, char **arguments,
                                struct spw_cli_fit_variation *ret_variation);
void spw_cli_fit_variation_fini(struct spw_cli_fit_variation *variation);

/* A copy of the arguments with a value for each {NAME}. NULL without memory. The caller frees it
 * with spw_cli_fit_variation_free. */
char **spw_cli_fit_variation_arguments(const struct spw_cli_fit_variation *variation, size_t value,
                                       char **arguments);
void spw_cli_fit_variation_free(char **arguments);
