#include "cli/console/markdown.h"

#include <stdio.h>
#include <string.h>

static void print_cell(const char *text, size_t width)
{
    size_t length = strlen(text);

    for (; *text != '\0'; text++) {
        printf("%s%c", *text == '|' ? "\\" : "", *text);
    }
    printf("%*s", length < width ? (int)(width - length) : 0, "");
}

void spw_cli_markdown_row(const char *const *cells, size_t count, const size_t *widths)
{
    for (size_t i = 0; i < count; i++) {
        fputs("| ", stdout);
        print_cell(cells[i], widths != NULL ? widths[i] : 0);
        putchar(' ');
    }
    puts("|");
}

void spw_cli_markdown_head(const char *const *columns, size_t count, const size_t *widths)
{
    spw_cli_markdown_row(columns, count, widths);
    for (size_t i = 0; i < count; i++) {
        fputs("|---", stdout);
    }
    puts("|");
}
