/* Markdown tables on stdout. No locking. */
#pragma once

#include <stddef.h>

/* Prints one row. Cells are padded to `widths`, unless that is NULL. A vertical bar in a cell is
 * escaped. */
void spw_cli_markdown_row(const char *const *cells, size_t count, const size_t *widths);

/* Prints the row of column names and the line below it. */
void spw_cli_markdown_head(const char *const *columns, size_t count, const size_t *widths);
