/* Finds line numbers in the tables of CPython's code objects, which have three forms.
 *
 * `table` has `length` bytes with any content. Nothing outside of the table is read. `first` is
 * co_firstlineno. `code` is the byte offset of the instruction in the code. Pure functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum spw_callsite_line_form {
    SPW_LINE_LNOTAB,    /* 3.8, 3.9: co_lnotab */
    SPW_LINE_LINETABLE, /* 3.10: co_linetable as pairs */
    SPW_LINE_LOCATIONS, /* 3.11 and later: co_linetable as locations */
};

/* Returns the line of an instruction; 0 if the table has none. The result depends only on the first
 * *ret_used bytes of the table. */
uint32_t spw_callsite_line_find(enum spw_callsite_line_form form, const uint8_t *table,
                                size_t length, int first, int code, size_t *ret_used);
