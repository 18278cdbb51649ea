/* Input and output of the command: its arguments, lines, tables, JSON. It does not know any other
 * folder of the command.
 *
 *   arguments   parses command lines, and reports errors in them
 *   json        JSON files and JSON output
 *   messages    exit codes, error messages, lines of output and tables
 *
 * Results go to stdout. Error messages go to stderr. `run` and `sim` write everything to stderr,
 * because the program that they start owns stdout. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes of the command. `run` and `sim` return the exit code of the program. */
enum spw_cli_exit {
    SPW_CLI_EXIT_OK = 0,
    SPW_CLI_EXIT_FINDINGS = 1,
    SPW_CLI_EXIT_USAGE = 2,
    SPW_CLI_EXIT_CANNOT_START = 125,
    SPW_CLI_EXIT_NOT_FOUND = 127,
    SPW_CLI_EXIT_SIGNAL = 128, /* plus the signal's number */
};

/* Writes one line to stderr: "spillway: <command>: <text>". */
void spw_cli_complain(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints text that may contain names of unknown origin. Replaces control characters, so that no
 * name can forge a line of output. Newlines at the beginning and the end of the format are kept. */
void spw_cli_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Format a size as "1.50 GiB" and a share as " 12.5 %". The result stays valid for the next 15
 * calls of these functions. */
const char *spw_cli_size(uint64_t bytes);
const char *spw_cli_share(uint64_t bytes, uint64_t total);

/* Returns true if colours may be written to the descriptor: it is a terminal, TERM is set and is
 * not dumb, and NO_COLOR is not set (no-color.org). */
bool spw_cli_has_colour(int fd);

/* A line of output that is built piece by piece. Initialize it with {""}. */
struct spw_cli_line {
    char text[1600];
};

/* Appends text after replacing unprintable characters (common/utf8.h). Text that does not fit in
 * the buffer is cut off. */
void spw_cli_line_add(struct spw_cli_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print parts of a Markdown table to stdout. _row prints one row. _head prints the row of column
 * names and the separator line. Cells are padded to `widths`; if `widths` is NULL, they are not
 * padded. A vertical bar in a cell is escaped. */
void spw_cli_markdown_row(const char *const *cells, size_t count, const size_t *widths);
void spw_cli_markdown_head(const char *const *columns, size_t count, const size_t *widths);
