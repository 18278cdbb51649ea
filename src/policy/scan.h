/* A strict syntax check of a JSON text, which also records the position of every value.
 *
 * cJSON parses the text afterwards, but gives no positions and accepts invalid texts. The scan
 * accepts RFC 8259 in UTF-8, without byte order mark and NUL characters, with numbers of at most 63
 * characters and a nesting of at most SPW_SCAN_DEPTH. cJSON reads such a text in the same way: the
 * values of its tree, in document order, correspond one by one to the places recorded here. No
 * locking; the caller frees the places. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_SCAN_DEPTH = 16, SPW_SCAN_NUMBER = 63, SPW_SCAN_PROBLEM = 160 };

/* One value of the text. Offsets are in bytes. */
struct spw_scan_place {
    uint32_t key;   /* offset of the key; without a key, of the value */
    uint32_t value; /* offset of the value */
    uint32_t next;  /* index of the first place behind this value and all that it contains */
};

struct spw_scan {
    struct spw_scan_place *places; /* in document order; free() */
    size_t count;
    size_t problem_at;              /* byte offset */
    char problem[SPW_SCAN_PROBLEM]; /* the problem and the expectation; "": none */
};

/* Scans `length` bytes, less than 4 GiB. Returns false, with `problem` set and no places, when the
 * text is not valid or there is no memory. */
bool spw_policy_scan(const char *text, size_t length, struct spw_scan *ret_scan);

/* A position for people. Line and column count from 1; columns are characters. */
struct spw_scan_cursor {
    const char *text;
    size_t offset;
    size_t line;
    size_t column;
};

/* Moves the cursor forward to `offset`, which is at most the length of the text. A new cursor is
 * {text, 0, 1, 1}. */
void spw_policy_scan_advance(struct spw_scan_cursor *cursor, size_t offset);
