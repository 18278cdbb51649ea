/* A set of address ranges that do not overlap, stored as a sorted array. It is made for a few
 * thousand ranges.
 *
 * Not thread-safe: the caller holds a lock. A set of zero bytes is empty and ready for use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_span {
    uint64_t begin;
    uint64_t end; /* after the last byte */
};

struct spw_spans {
    struct spw_span *list; /* sorted by address */
    size_t count, capacity;
};

/* Adds a range of at least one byte, and removes all ranges that overlap it. Returns false if there
 * is no memory. */
bool spw_program_spans_add(struct spw_spans *spans, uint64_t begin, uint64_t bytes);

/* Removes the range that contains `address`. Returns false if there is none. */
bool spw_program_spans_take(struct spw_spans *spans, uint64_t address, struct spw_span *ret_span);

/* Returns true if a range contains `address`. */
bool spw_program_spans_have(const struct spw_spans *spans, uint64_t address);

/* Returns the next boundary after `address`. Outside of all ranges, this is the beginning of the
 * next range. Inside a range, it is the end of the last range that follows without a gap.
 * UINT64_MAX if there is no boundary. */
uint64_t spw_program_spans_change(const struct spw_spans *spans, uint64_t address);

/* Empties the set and frees its memory. */
void spw_program_spans_clear(struct spw_spans *spans);
