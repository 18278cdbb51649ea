/* The answers of `spillway fit`, on stdout and as JSON. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/fit/session.h"

/* One row: a card and its answer. */
struct spw_cli_fit_row {
    const struct spw_gpu_profile *card;
    size_t value;     /* index of the value of the answer */
    bool has_value;   /* false: a value is varied, and none fits */
    size_t too_large; /* index of the smallest value known not to fit; has_too_large */
    bool has_too_large;
    bool too_large_failed; /* that value failed, but not for lack of memory */
    struct spw_cli_fit_answer answer;
};

/* Prints the rows in their order, and the need of each value if a value is varied. */
void spw_cli_fit_table_print(const struct spw_cli_fit_session *session,
                             const struct spw_cli_fit_row *rows, size_t count);

/* Writes the rows to a file as JSON. False, with a line on stderr, when it cannot be written. */
bool spw_cli_fit_table_write(const struct spw_cli_fit_session *session,
                             const struct spw_cli_fit_row *rows, size_t count, const char *path);
