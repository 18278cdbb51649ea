#include "cli/console/messages.h"

#include "common/size.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void spw_cli_complain(const char *command, const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    spw_cli_print(stderr, "spillway: %s: %s\n", command, text);
}

void spw_cli_print(FILE *out, const char *format, ...)
{
    size_t length = strlen(format), begin = strspn(format, "\n");
    bool ends = length > 0 && format[length - 1] == '\n';
    char *text = NULL;
    va_list arguments;
    int made;

    va_start(arguments, format);
    made = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (made <= 0) {
        return;
    }
    text[made - (ends ? 1 : 0)] = '\0';
    spw_utf8_plain(text + begin, /* keep */ "");
    fprintf(out, "%s%s", text, ends ? "\n" : "");
    free(text);
}

static char *next_text(void)
{
    enum { TEXTS = 16 };
    static char texts[TEXTS][SPW_SIZE_TEXT];
    static unsigned next;

    return texts[next++ % TEXTS];
}

const char *spw_cli_size(uint64_t bytes)
{
    return spw_size_text(bytes, next_text());
}

const char *spw_cli_share(uint64_t bytes, uint64_t total)
{
    uint64_t permille = total > 0 ? (uint64_t)((double)bytes * 1000 / (double)total) : 0;
    char *text = next_text();

    (void)snprintf(text, SPW_SIZE_TEXT, "%3" PRIu64 ".%" PRIu64 " %%", permille / 10,
                   permille % 10);
    return text;
}

bool spw_cli_has_colour(int fd)
{
    const char *without = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return (without == NULL || *without == '\0') && isatty(fd) != 0 && terminal != NULL &&
           *terminal != '\0' && strcmp(terminal, "dumb") != 0;
}

void spw_cli_line_add(struct spw_cli_line *line, const char *format, ...)
{
    size_t used = strlen(line->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line->text + used, sizeof(line->text) - used, format, arguments);
    va_end(arguments);
    spw_utf8_plain(line->text + used, /* keep */ "");
}

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
