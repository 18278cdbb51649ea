#include "cli/doctor/report.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void spw_cli_report_init(struct spw_cli_report *report, bool json)
{
    *report = (struct spw_cli_report){.json = json, .root = json ? cJSON_CreateObject() : NULL};
}

void spw_cli_report_table(struct spw_cli_report *report, const char *key, const char *title,
                          const char *const *columns)
{
    report->column_count = 0;
    while (columns[report->column_count] != NULL && report->column_count < SPW_CLI_REPORT_COLUMNS) {
        report->columns[report->column_count] = columns[report->column_count];
        report->column_count++;
    }
    if (report->json) {
        report->table = cJSON_AddArrayToObject(report->root, key);
    } else {
        printf("\n## %s\n\n", title);
        spw_cli_markdown_head(report->columns, (size_t)report->column_count, NULL);
    }
}

static cJSON *cell_value(const char *cell)
{
    char *end;
    double number = strtod(cell, &end);

    return *cell != '\0' && *end == '\0' ? cJSON_CreateNumber(number) : cJSON_CreateString(cell);
}

static void add_to_json(struct spw_cli_report *report, const char *const *cells)
{
    cJSON *row = cJSON_CreateObject();

    for (int i = 0; i < report->column_count; i++) {
        cJSON_AddItemToObject(row, report->columns[i], cell_value(cells[i]));
    }
    cJSON_AddItemToArray(report->table, row);
}

void spw_cli_report_row(struct spw_cli_report *report, const char *format, ...)
{
    char text[SPW_CLI_REPORT_COLUMNS * SPW_CLI_REPORT_CELL];
    const char *cells[SPW_CLI_REPORT_COLUMNS];
    char *rest = text;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    spw_utf8_plain(text, /* keep */ "\t");
    for (int i = 0; i < report->column_count; i++) {
        cells[i] = rest != NULL ? strsep(&rest, "\t") : "";
    }
    if (report->json) {
        add_to_json(report, cells);
    } else {
        spw_cli_markdown_row(cells, (size_t)report->column_count, NULL);
        fflush(stdout);
    }
}

void spw_cli_report_fini(struct spw_cli_report *report)
{
    if (report->json) {
        spw_cli_json_print(report->root, /* one_line */ false);
        report->root = NULL;
    }
}
