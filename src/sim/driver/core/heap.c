#include "sim/driver/core/heap.h"

#include <stdlib.h>

static struct sim_range *new_range(uint64_t start, uint64_t size)
{
    struct sim_range *range = malloc(sizeof(*range));

    if (range != NULL) {
        range->start = start;
        range->size = size;
    }
    return range;
}

struct sim_segment *sim_heap_add(struct sim_heap *heap, uint64_t start, uint64_t size, void *owner)
{
    struct sim_segment *segment = calloc(1, sizeof(*segment));
    struct sim_range *range = new_range(start, size);

    if (segment == NULL || range == NULL) {
        free(segment);
        free(range);
        return NULL;
    }
    segment->range.start = start;
    segment->range.size = size;
    segment->owner = owner;
    sim_rangemap_insert(&heap->segments, &segment->range);
    sim_rangemap_insert(&heap->free, range);
    return segment;
}

void sim_heap_remove(struct sim_heap *heap, struct sim_segment *segment)
{
    uint64_t end = sim_range_end(&segment->range);
    struct sim_range *range;

    while ((range = sim_rangemap_from(&heap->free, segment->range.start)) != NULL &&
           range->start < end) {
        sim_rangemap_remove(&heap->free, range);
        free(range);
    }
    sim_rangemap_remove(&heap->segments, &segment->range);
    free(segment);
}

static struct sim_segment *segment_of(const struct sim_heap *heap, uint64_t address)
{
    return (struct sim_segment *)sim_rangemap_find(&heap->segments, address);
}

uint64_t sim_heap_take(struct sim_heap *heap, uint64_t size)
{
    struct sim_range *range = NULL;
    uint64_t start;

    if (heap->next_fit) {
        range = sim_rangemap_fit(&heap->free, heap->cursor, size);
    }
    if (range == NULL) {
        range = sim_rangemap_fit(&heap->free, 0, size);
    }
    if (range == NULL) {
        return 0;
    }
    start = range->start;
    sim_rangemap_remove(&heap->free, range);
    if (range->size > size) {
        range->start += size;
        range->size -= size;
        sim_rangemap_insert(&heap->free, range);
    } else {
        free(range);
    }
    segment_of(heap, start)->used += size;
    heap->cursor = start + size;
    return start;
}

struct sim_segment *sim_heap_give(struct sim_heap *heap, uint64_t start, uint64_t size)
{
    struct sim_segment *segment = segment_of(heap, start);
    struct sim_range *below = NULL, *above = NULL;

    segment->used -= size;
    if (start > segment->range.start) {
        below = sim_rangemap_find(&heap->free, start - 1);
    }
    if (start + size < sim_range_end(&segment->range)) {
        above = sim_rangemap_find(&heap->free, start + size);
    }
    if (below != NULL) {
        sim_rangemap_remove(&heap->free, below);
        start = below->start;
        size += below->size;
    }
    if (above != NULL) {
        sim_rangemap_remove(&heap->free, above);
        size += above->size;
    }
    if (below == NULL) {
        below = above;
    } else {
        free(above);
    }
    if (below == NULL) {
        below = new_range(0, 0);
        if (below == NULL) {
            return segment; /* out of host memory: the piece is lost */
        }
    }
    below->start = start;
    below->size = size;
    sim_rangemap_insert(&heap->free, below);
    return segment;
}
