/* A line of output, built from pieces. One thread. */
#pragma once

#include <stdint.h>

/* Begins as {""}. */
struct spw_cli_line {
    char text[1600];
};

/* Adds text, made plain (common/utf8.h) and cut off at the end of the buffer. */
void spw_cli_line_add(struct spw_cli_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
