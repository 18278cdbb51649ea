#include "program/spans.h"

#include "common/grow.h"

#include <stdlib.h>
#include <string.h>

/* The index of the first range that ends after `address`. */
static size_t find(const struct spw_spans *spans, uint64_t address)
{
    size_t low = 0, high = spans->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (spans->list[middle].end > address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Replaces `removed` ranges at `at` by `added` ones, which the caller fills in. The array has room.
 */
static void splice(struct spw_spans *spans, size_t at, size_t removed, size_t added)
{
    memmove(spans->list + at + added, spans->list + at + removed,
            (spans->count - at - removed) * sizeof(spans->list[0]));
    spans->count += added - removed;
}

bool spw_program_spans_add(struct spw_spans *spans, uint64_t begin, uint64_t bytes)
{
    uint64_t end = begin + bytes;
    size_t at = find(spans, begin), overlapped = 0;

    if (!SPW_GROW(&spans->list, &spans->capacity, spans->count + 1)) {
        return false;
    }
    while (at + overlapped < spans->count && spans->list[at + overlapped].begin < end) {
        overlapped++;
    }
    splice(spans, at, overlapped, 1);
    spans->list[at] = (struct spw_span){begin, end};
    return true;
}

bool spw_program_spans_have(const struct spw_spans *spans, uint64_t address)
{
    size_t at = find(spans, address);

    return at < spans->count && spans->list[at].begin <= address;
}

uint64_t spw_program_spans_change(const struct spw_spans *spans, uint64_t address)
{
    size_t at = find(spans, address);

    if (at == spans->count) {
        return UINT64_MAX;
    }
    if (spans->list[at].begin > address) {
        return spans->list[at].begin;
    }
    while (at + 1 < spans->count && spans->list[at + 1].begin == spans->list[at].end) {
        at++;
    }
    return spans->list[at].end;
}

bool spw_program_spans_take(struct spw_spans *spans, uint64_t address, struct spw_span *ret_span)
{
    size_t at = find(spans, address);

    if (at == spans->count || spans->list[at].begin > address) {
        return false;
    }
    *ret_span = spans->list[at];
    splice(spans, at, 1, 0);
    return true;
}

void spw_program_spans_clear(struct spw_spans *spans)
{
    free(spans->list);
    *spans = (struct spw_spans){0};
}
