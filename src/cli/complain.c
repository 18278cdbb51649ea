#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void spw_complain(const char *subcommand, const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "spillway: %s: %s\n", subcommand, text);
}

bool spw_is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}
