/* Sums the memory of a recorded program by purpose (recording/category.h). For each device, it
 * computes the sums at the device's peak and at the end of each step. One thread, one recording at
 * a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recording/category.h"
#include "cli/report/report.h"
#include "common/bounds.h"

enum { SPW_CLI_STEP_ROWS = 1000 }; /* figures are kept for this number of last steps */

/* Live bytes of a device, in total and by category. */
struct spw_cli_amounts {
    uint64_t live, by[SPW_CLI_CATEGORIES];
};

/* The memory of a device at the end of a step. */
struct spw_cli_step_row {
    uint64_t number, time; /* number: from 1 on; time: in units */
    struct spw_cli_amounts held;
};

struct spw_cli_categories {
    bool known; /* the recording has tensors; otherwise every block is of category UNKNOWN */
    struct spw_cli_lives lives;
    const struct spw_cli_ends *steps;
    const char *steps_kind; /* "optimizer steps" */
    struct spw_cli_amounts now[SPW_DEVICES_MAX], at_peak[SPW_DEVICES_MAX];
    struct spw_cli_amounts most[SPW_DEVICES_MAX];   /* the highest bytes of each category */
    struct spw_cli_step_row *rows[SPW_DEVICES_MAX]; /* NULL: none */
    size_t row_count;
    size_t next_end; /* while the recording is read: index of the next end in `steps` */
    struct spw_cli_growth *growth;
};

/* Reads the recording twice, and fills report->categories. Returns false if memory runs out. The
 * caller frees the categories even on failure. */
bool spw_cli_report_categorise(struct spw_cli_report *report);
void spw_cli_categories_free(struct spw_cli_categories *categories);

/* Returns the category of a block, which may be live or freed. */
enum spw_cli_category spw_cli_report_category(const struct spw_cli_report *report,
                                              const struct spw_cli_block *block);
