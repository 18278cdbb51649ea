#include "cli/console/messages.h"

#include <stdarg.h>
#include <stdio.h>

void spw_cli_complain(const char *command, const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "spillway: %s: %s\n", command, text);
}
