/* Line numbers out of the tables of CPython's code objects, in their three forms.
 *
 * `table` has `length` bytes, `first` is co_firstlineno, `code` the byte offset of the instruction
 * in the code. Each returns the line, 0 when the table knows none, and tells in *ret_used how many
 * bytes of the table the answer depends on. The tables are only read within their length, whatever
 * is in them. Pure functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum spw_callsite_line_form {
    SPW_LINE_LNOTAB,    /* 3.8, 3.9: co_lnotab */
    SPW_LINE_LINETABLE, /* 3.10: co_linetable, of pairs */
    SPW_LINE_LOCATIONS, /* 3.11 and later: co_linetable, of locations */
};

/* The line of an instruction by a table of the given form. */
uint32_t spw_callsite_line_find(enum spw_callsite_line_form form, const uint8_t *table,
                                size_t length, int first, int code, size_t *ret_used);
