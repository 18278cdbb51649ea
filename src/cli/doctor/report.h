/* What the doctor says: tables, printed row by row as Markdown, or gathered and printed as one
 * JSON object at the end. */
#pragma once

#include <stdbool.h>

struct cJSON;

enum { SPW_CLI_REPORT_COLUMNS = 8, SPW_CLI_REPORT_CELL = 256 };

struct spw_cli_report {
    bool json;
    struct cJSON *root;  /* with json only: owned */
    struct cJSON *table; /* the one that is being filled */
    const char *columns[SPW_CLI_REPORT_COLUMNS];
    int column_count;
};

/* Begins a report on stdout. */
void spw_cli_report_init(struct spw_cli_report *report, bool json);

/* Begins a table. `key` names it in JSON, `title` in Markdown; `columns`, static strings, end with
 * NULL and name the members of a row in JSON. */
void spw_cli_report_table(struct spw_cli_report *report, const char *key, const char *title,
                          const char *const *columns);

/* Adds a row: as many formatted cells as there are columns, separated by tabs. A cell that reads
 * as a number is one in JSON. */
void spw_cli_report_row(struct spw_cli_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the report and prints what is not printed yet. */
void spw_cli_report_fini(struct spw_cli_report *report);
