#include "cli/console/messages.h"

#include "common/utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
