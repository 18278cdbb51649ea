/* `spillway doctor`: tests and measurements of the machine and its driver. It does not know the
 * pool.
 *
 *   bandwidth           measures copies, and kernels on device and host memory
 *   concurrency         measures the memory calls that wait for a running kernel
 *   cuda_api            the driver functions that the doctor calls
 *   devices             tables about driver, devices and host memory
 *   disabled            settings that disable spillway or parts of it
 *   entry_point_child   tests one entry point in a child process
 *   entry_points        tests if spillway serves every entry point
 *   functions           intercepted functions that this driver has or lacks
 *   host_chunks         tries where the driver can make host chunks
 *   host_limits         the limits on host memory for spilled blocks
 *   kernels             the kernels for measurements, as PTX
 *   probe               tests memory calls, with checked content
 *   report              the output: tables, or JSON
 *   tables              declares the tests and measurements
 *   vmm_cost            measures virtual memory management
 *   without_device      the tables for a machine without a usable device
 *
 * Tables are printed to stdout. As Markdown, they are printed row by row. As JSON, they are
 * collected and printed at the end as one object. No locking. */
#pragma once

#include <stdbool.h>

struct cJSON;

enum { SPW_CLI_REPORT_COLUMNS = 8, SPW_CLI_REPORT_CELL = 256 };

struct spw_cli_report {
    bool json;
    struct cJSON *root;  /* owned; only used if `json` is true */
    struct cJSON *table; /* the table that is being filled */
    const char *columns[SPW_CLI_REPORT_COLUMNS];
    int column_count;
};

/* _init begins a report on stdout. _fini ends the report and prints the JSON object, if there is
 * one. */
void spw_cli_report_init(struct spw_cli_report *report, bool json);
void spw_cli_report_fini(struct spw_cli_report *report);

/* Begins a table. `key` is the name of the table in JSON, and `title` is its heading in Markdown.
 * `columns` is a list of static strings that ends with NULL. It has at most SPW_CLI_REPORT_COLUMNS
 * strings. In JSON, the strings are the names of a row's members. */
void spw_cli_report_table(struct spw_cli_report *report, const char *key, const char *title,
                          const char *const *columns);

/* Adds a row. The formatted text has one cell per column, separated by tabs. If a cell is a number,
 * it becomes a number in JSON. */
void spw_cli_report_row(struct spw_cli_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
