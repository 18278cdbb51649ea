#include "cli/doctor/report.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void spw_cli_report_init(struct spw_cli_report *report, bool json)
{
    *report = (struct spw_cli_report){.json = json, .root = json ? cJSON_CreateObject() : NULL};
}

static void print_head(const struct spw_cli_report *report, const char *title)
{
    printf("\n## %s\n\n", title);
    for (int i = 0; i < report->column_count; i++) {
        printf("| %s ", report->columns[i]);
    }
    fputs("|\n", stdout);
    for (int i = 0; i < report->column_count; i++) {
        fputs("|---", stdout);
    }
    fputs("|\n", stdout);
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
        print_head(report, title);
    }
}

static cJSON *cell_value(const char *cell)
{
    char *end;
    double number = strtod(cell, &end);

    return *cell != '\0' && *end == '\0' ? cJSON_CreateNumber(number) : cJSON_CreateString(cell);
}

void spw_cli_report_row(struct spw_cli_report *report, const char *format, ...)
{
    char text[SPW_CLI_REPORT_COLUMNS * SPW_CLI_REPORT_CELL];
    cJSON *row = report->json ? cJSON_CreateObject() : NULL;
    char *rest = text;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (int i = 0; i < report->column_count; i++) {
        const char *cell = rest != NULL ? strsep(&rest, "\t") : "";

        if (report->json) {
            cJSON_AddItemToObject(row, report->columns[i], cell_value(cell));
        } else {
            printf("| %s ", cell);
        }
    }
    if (report->json) {
        cJSON_AddItemToArray(report->table, row);
    } else {
        puts("|");
        fflush(stdout);
    }
}

void spw_cli_report_fini(struct spw_cli_report *report)
{
    char *text;

    if (!report->json) {
        return;
    }
    text = cJSON_Print(report->root);
    if (text != NULL) {
        puts(text);
    }
    cJSON_free(text);
    cJSON_Delete(report->root);
    report->root = NULL;
}
