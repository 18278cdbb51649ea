#include "cli/commands/list.h"
#include "cli/console/messages.h"

#include "common/options.h"
#include "cli/launch/flags.h"

#include <stdio.h>
#include <string.h>

enum column { VARIABLE, FLAG, FALLBACK, MEANING, COLUMN_COUNT };

struct row {
    char flag[SPW_CLI_FLAG_NAME + 2];
    const char *cells[COLUMN_COUNT];
};

static void fill_row(enum spw_option option, struct row *row)
{
    const struct spw_option_row *source = spw_option_row(option);
    char name[SPW_CLI_FLAG_NAME];

    spw_cli_flag_name(option, name);
    snprintf(row->flag, sizeof(row->flag), "%s%s", *name != '\0' ? "--" : "", name);
    row->cells[VARIABLE] = source->name;
    row->cells[FLAG] = row->flag;
    row->cells[FALLBACK] = source->fallback;
    row->cells[MEANING] = source->help;
}

/* A Markdown table whose columns, but for the last, are as wide as their widest cell. */
static void print_table(void)
{
    struct row rows[SPW_OPT_COUNT + 1] = {
        {.cells = {"variable", "flag", "default", "meaning"}},
    };
    size_t widths[MEANING] = {0};

    for (int i = 0; i < SPW_OPT_COUNT; i++) {
        fill_row((enum spw_option)i, &rows[i + 1]);
    }
    for (int i = 0; i <= SPW_OPT_COUNT; i++) {
        for (int column = 0; column < MEANING; column++) {
            size_t length = strlen(rows[i].cells[column]);

            widths[column] = length > widths[column] ? length : widths[column];
        }
    }
    for (int i = 0; i <= SPW_OPT_COUNT; i++) {
        for (int column = 0; column < MEANING; column++) {
            printf("| %-*s ", (int)widths[column], rows[i].cells[column]);
        }
        printf("| %s |\n%s", rows[i].cells[MEANING], i == 0 ? "|---|---|---|---|\n" : "");
    }
}

int spw_cli_command_options(int argc, char **argv)
{
    if (argc > 1 && spw_cli_is_help(argv[1])) {
        fputs("usage: spillway options\n\n"
              "Lists every option: the variable, the flag of spillway run and spillway sim, the\n"
              "default, the meaning. A flag wins over its variable.\n",
              stdout);
        return SPW_CLI_EXIT_OK;
    }
    if (argc > 1) {
        spw_cli_complain(argv[0], "%s: no arguments are expected", argv[1]);
        return SPW_CLI_EXIT_USAGE;
    }
    print_table();
    return SPW_CLI_EXIT_OK;
}
