/* One number of a command that is varied: --vary NAME=VALUE,..., where a value may be a range of
 * numbers, 1..16. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SPW_CLI_FIT_VALUES = 64 };

struct spw_cli_fit_variation {
    char *name;                       /* NULL: nothing is varied, and there is one value */
    char *values[SPW_CLI_FIT_VALUES]; /* in the order given */
    size_t count;
};

/* Reads the text; NULL: nothing is varied. {NAME} must be in the command. False, with one line of
 * `command` on stderr, when it is not usable. */
bool spw_cli_fit_variation_read(const char *command, const char *text, char **arguments,
                                struct spw_cli_fit_variation *ret_variation);
void spw_cli_fit_variation_fini(struct spw_cli_fit_variation *variation);

/* The arguments with a value in the place of each {NAME}, to be freed with
 * spw_cli_fit_variation_free. NULL without memory. */
char **spw_cli_fit_variation_arguments(const struct spw_cli_fit_variation *variation, size_t value,
                                       char **arguments);
void spw_cli_fit_variation_free(char **arguments);
