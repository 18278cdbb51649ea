/* Input and output of the command: its arguments, lines, tables, JSON. It does not know any other
 * folder of the command.
 *
 *   arguments   parses command lines, and reports errors in them
 *   json        JSON files and JSON output
 *   messages    exit codes, error messages, lines of output and tables
 *
 * Results go to stdout; error messages go to stderr. `run` and `sim` write everything to stderr,
 * because stdout belongs to the program that they start. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes of the command. `run` and `sim` pass on those of the program. */
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

/* Prints text with names of unknown origin. Control characters are replaced, except newlines at the
 * beginning and the end of the format, so that no name can forge a line. */
void spw_cli_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A size as "1.50 GiB", and a share as " 12.5 %"; valid until 16 more of these texts are made. */
const char *spw_cli_size(uint64_t bytes);
const char *spw_cli_share(uint64_t bytes, uint64_t total);

/* A line of output, built from pieces. Begins as {""}. */
struct spw_cli_line {
    char text[1600];
};

/* Adds text, made plain (common/utf8.h) and cut off at the end of the buffer. */
void spw_cli_line_add(struct spw_cli_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print one row of a Markdown table on stdout, or its head: the row of column names and the line
 * below. Cells are padded to `widths`, unless that is NULL. A vertical bar in a cell is escaped. */
void spw_cli_markdown_row(const char *const *cells, size_t count, const size_t *widths);
void spw_cli_markdown_head(const char *const *columns, size_t count, const size_t *widths);
