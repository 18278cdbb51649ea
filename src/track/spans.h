/* A set of ranges of addresses that do not overlap, for a few thousand at most.
 *
 * Locking: none; the owner's lock covers it. A zeroed set is empty and ready. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_span {
    uint64_t begin;
    uint64_t end; /* behind the last byte */
};

struct spw_spans {
    struct spw_span *list; /* in the order of addresses */
    size_t count, capacity;
};

/* Adds a range that is not empty, in place of those that it overlaps: they are over. False without
 * memory. */
bool spw_track_spans_add(struct spw_spans *spans, uint64_t begin, uint64_t bytes);

/* Removes the range that `address` is in; false when there is none. */
bool spw_track_spans_take(struct spw_spans *spans, uint64_t address, struct spw_span *ret_span);

/* Whether `address` is in one. */
bool spw_track_spans_have(const struct spw_spans *spans, uint64_t address);

/* Leaves the set empty and frees its memory. */
void spw_track_spans_clear(struct spw_spans *spans);
