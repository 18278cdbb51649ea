/* A strict syntax check of a JSON text. It also records the position of every value.
 *
 * cJSON parses the text afterwards, but reports no positions and accepts some invalid texts. The
 * scan accepts RFC 8259 in UTF-8, without byte order mark and NUL characters, with numbers of at
 * most 63 characters and a nesting of at most SPW_SCAN_DEPTH. cJSON reads such a text in the same
 * way as the scan: the values of its tree, in document order, correspond one by one to the places
 * that the scan records. No locking; the caller frees the places. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_SCAN_DEPTH = 16, SPW_SCAN_NUMBER = 63, SPW_SCAN_PROBLEM = 160 };

/* One value of the text. Offsets are in bytes. */
struct spw_scan_place {
    uint32_t key;   /* offset of the key; if there is no key, of the value */
    uint32_t value; /* offset of the value */
    uint32_t next;  /* index of the first place behind this value and all values in it */
};

struct spw_scan {
    struct spw_scan_place *places; /* in document order; the caller frees them */
    size_t count;
    size_t problem_at;              /* byte offset */
    char problem[SPW_SCAN_PROBLEM]; /* the problem and the expected value; "": none */
};

/* Scans `length` bytes, less than 4 GiB. If the text is not valid, or if there is no memory,
 * returns false with `problem` set and no places. */
bool spw_policy_scan(const char *text, size_t length, struct spw_scan *ret_scan);

/* A position that is shown to people. Line and column count from 1. Columns count characters. */
struct spw_scan_cursor {
    const char *text;
    size_t offset;
    size_t line;
    size_t column;
};

/* Moves the cursor forward to `offset`, which must be at most the length of the text. A new cursor
 * is {text, 0, 1, 1}. */
void spw_policy_scan_advance(struct spw_scan_cursor *cursor, size_t offset);
