#include "cli/console/line.h"

#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void spw_cli_line_add(struct spw_cli_line *line, const char *format, ...)
{
    size_t used = strlen(line->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line->text + used, sizeof(line->text) - used, format, arguments);
    va_end(arguments);
    spw_utf8_plain(line->text + used, /* keep */ "");
}
