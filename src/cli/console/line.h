/* A line of output that is put together from pieces. One thread. */
#pragma once

#include <stdint.h>

/* Begins as {""}. */
struct spw_cli_line {
    char text[1600];
};

/* Adds text, made plain (common/utf8.h); what does not fit into the buffer is cut off. */
void spw_cli_line_add(struct spw_cli_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a size as "1.50 GiB". */
void spw_cli_line_add_size(struct spw_cli_line *line, uint64_t bytes);
