/* A set of address ranges that do not overlap, in a sorted array: for a few thousand ranges.
 *
 * Not thread-safe: the caller holds a lock. A zeroed set is empty and ready for use. */
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

/* Adds a range of at least one byte and removes the ranges that it overlaps. False without memory.
 */
bool spw_program_spans_add(struct spw_spans *spans, uint64_t begin, uint64_t bytes);

/* Removes the range that contains `address`; false when none does. */
bool spw_program_spans_take(struct spw_spans *spans, uint64_t address, struct spw_span *ret_span);

/* True when a range contains `address`. */
bool spw_program_spans_have(const struct spw_spans *spans, uint64_t address);

/* Returns the next boundary after `address`: the beginning of the next range or, inside a range,
 * the end of the ranges that follow without a gap. UINT64_MAX when there is none. */
uint64_t spw_program_spans_change(const struct spw_spans *spans, uint64_t address);

/* Empties the set and frees its memory. */
void spw_program_spans_clear(struct spw_spans *spans);
