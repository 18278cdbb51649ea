/* Where things stand in a JSON text: what cJSON, which does the parsing, does not say, and what it
 * lets pass. The scan is strict (RFC 8259, UTF-8, no byte order mark, no NUL characters, numbers of
 * at most 63 characters, nesting of at most SPW_SCAN_DEPTH): what it accepts, cJSON reads alike,
 * and the values of cJSON's tree in document order are its places one by one. No locking; the
 * places are the caller's to free. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_SCAN_DEPTH = 16, SPW_SCAN_NUMBER = 63, SPW_SCAN_PROBLEM = 160 };

/* One value of the text. Offsets are in bytes. */
struct spw_scan_place {
    uint32_t key;   /* offset of the key; of the value, where there is none */
    uint32_t value; /* offset of the value */
    uint32_t next;  /* index of the first place behind this value and all that it contains */
};

struct spw_scan {
    struct spw_scan_place *places; /* in document order; free() */
    size_t count;
    size_t problem_at;              /* byte offset */
    char problem[SPW_SCAN_PROBLEM]; /* what, and what was expected; "" when there is none */
};

/* Scans `length` bytes, below 4 GiB. False, with `problem` set and no places, when the text is not
 * such JSON, or there is no memory. */
bool spw_policy_scan(const char *text, size_t length, struct spw_scan *ret_scan);

/* A place as people count it, both from 1; columns are characters. */
struct spw_scan_cursor {
    const char *text;
    size_t offset;
    size_t line;
    size_t column;
};

/* Moves the cursor forward to `offset`, at most `length` of the text; it begins at {text, 0, 1, 1}.
 */
void spw_policy_scan_advance(struct spw_scan_cursor *cursor, size_t offset);
