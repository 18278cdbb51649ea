#include "sim/driver/memory/known.h"

#include <stdlib.h>

static void insert(struct sim_known *known, uint64_t start, uint64_t end)
{
    struct sim_range *range = start < end ? calloc(1, sizeof(*range)) : NULL;

    if (range != NULL) {
        range->start = start;
        range->size = end - start;
        sim_rangemap_insert(&known->ranges, range);
    }
}

static void drop(struct sim_known *known, struct sim_range *range)
{
    sim_rangemap_remove(&known->ranges, range);
    free(range);
}

/* Removes all known ranges that overlap or touch [start, end), and returns their bounds. */
static void take_out(struct sim_known *known, uint64_t start, uint64_t end, uint64_t *ret_first,
                     uint64_t *ret_last)
{
    struct sim_range *range = sim_rangemap_from(&known->ranges, start > 0 ? start - 1 : 0);

    *ret_first = start;
    *ret_last = end;
    while (range != NULL && range->start <= end) {
        *ret_first = range->start < *ret_first ? range->start : *ret_first;
        *ret_last = sim_range_end(range) > *ret_last ? sim_range_end(range) : *ret_last;
        drop(known, range);
        range = sim_rangemap_from(&known->ranges, start);
    }
}

void sim_known_set(struct sim_known *known, uint64_t at, uint64_t size, bool is_known)
{
    uint64_t first, last;

    if (size == 0 || (!is_known && known->ranges.count == 0) ||
        (is_known && sim_known_all(known, at, size))) {
        return;
    }
    take_out(known, at, at + size, &first, &last);
    if (is_known) {
        insert(known, first, last);
    } else {
        insert(known, first, at);
        insert(known, at + size, last);
    }
}

uint64_t sim_known_end(const struct sim_known *known, uint64_t at)
{
    const struct sim_range *range = sim_rangemap_find(&known->ranges, at);

    return range == NULL ? at : sim_range_end(range);
}

bool sim_known_all(const struct sim_known *known, uint64_t at, uint64_t size)
{
    return size == 0 || sim_known_end(known, at) >= at + size;
}

void sim_known_copy(struct sim_known *to, uint64_t to_at, const struct sim_known *from,
                    uint64_t from_at, uint64_t size)
{
    uint64_t done = 0;

    if (to == from) {
        sim_known_set(to, to_at, size, sim_known_all(from, from_at, size));
        return;
    }
    sim_known_set(to, to_at, size, false);
    while (done < size) {
        const struct sim_range *range = sim_rangemap_from(&from->ranges, from_at + done);
        uint64_t start, end;

        if (range == NULL || range->start >= from_at + size) {
            return;
        }
        start = range->start > from_at + done ? range->start - from_at : done;
        end = sim_range_end(range) - from_at;
        end = end < size ? end : size;
        sim_known_set(to, to_at + start, end - start, true);
        done = end;
    }
}

void sim_known_forget(struct sim_known *known)
{
    struct sim_range *range;

    while ((range = sim_rangemap_from(&known->ranges, 0)) != NULL) {
        drop(known, range);
    }
}
