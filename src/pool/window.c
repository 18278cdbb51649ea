#include "pool/window.h"

/* Whose block a window is for. */
struct tenant {
    const struct spw_stream_queue *queue; /* NULL: idle memory only */
    enum spw_window_kind kind;
};

static bool usable(const struct spw_extent *extent, const struct tenant *tenant)
{
    return extent->kind == SPW_EXTENT_HOLE ||
           (extent->kind == SPW_EXTENT_FREE && tenant->kind != SPW_WINDOW_FRESH &&
            (tenant->kind == SPW_WINDOW_ANY || !extent->host) &&
            (extent->queue->number == SPW_STREAM_QUEUE_IDLE || extent->queue == tenant->queue));
}

static void consider(const struct spw_space *space, struct spw_window *best,
                     struct spw_window window)
{
    window.missing =
        spw_pool_backing_missing(space->backing, window.address, window.address + window.bytes);
    if (best->bytes == 0 || window.missing < best->missing ||
        (window.missing == best->missing && window.slack < best->slack)) {
        *best = window;
    }
}

/* Weighs the run of usable extents that begins with `first`, at both of its ends, the end that such
 * blocks go to before the other. The run that reaches the frontier may go on behind it. */
static void consider_run(const struct spw_space *space, const struct spw_heap *heap,
                         struct spw_extent *first, uint64_t bytes, const struct tenant *tenant,
                         struct spw_window *best)
{
    struct spw_extent *last = first;
    uint64_t end;

    while (last->next != NULL && usable(last->next, tenant)) {
        last = last->next;
    }
    end = spw_pool_extent_end(last);
    if (last->next == NULL) {
        if (heap->end - first->address >= bytes) {
            consider(space, best, (struct spw_window){first->address, bytes, UINT64_MAX, 0, first});
        }
    } else if (end - first->address >= bytes) {
        uint64_t slack = end - first->address - bytes;
        uint64_t preferred = spw_pool_window_goes_high(space, bytes) ? end - bytes : first->address;
        uint64_t other = spw_pool_window_goes_high(space, bytes) ? first->address : end - bytes;

        consider(space, best, (struct spw_window){preferred, bytes, slack, 0, first});
        consider(space, best, (struct spw_window){other, bytes, slack, 0, first});
    }
}

static void consider_list(const struct spw_space *space, const struct spw_heap *heap,
                          const struct spw_age_list *list, uint64_t bytes,
                          const struct tenant *tenant, struct spw_window *best)
{
    for (struct spw_extent *e = list->oldest; e != NULL; e = e->age.next) {
        if (&space->heaps[e->heap] == heap && usable(e, tenant) &&
            (e->prev == NULL || !usable(e->prev, tenant))) {
            consider_run(space, heap, e, bytes, tenant, best);
        }
    }
}

struct spw_window spw_pool_window_best(const struct spw_space *space, const struct spw_heap *heap,
                                       uint64_t bytes, const struct spw_stream_queue *queue,
                                       enum spw_window_kind kind)
{
    const struct tenant tenant = {queue, kind};
    struct spw_window best = {0};

    consider_list(space, heap, &heap->holes, bytes, &tenant, &best);
    if (kind != SPW_WINDOW_FRESH) {
        consider_list(space, heap, &spw_pool_stream_queue_idle(space->queues)->extents, bytes,
                      &tenant, &best);
    }
    if (kind != SPW_WINDOW_FRESH && queue != NULL) {
        consider_list(space, heap, &queue->extents, bytes, &tenant, &best);
    }
    if ((heap->last == NULL || !usable(heap->last, &tenant)) &&
        heap->end - heap->frontier >= bytes) {
        consider(space, &best, (struct spw_window){heap->frontier, bytes, UINT64_MAX, 0, NULL});
    }
    return best;
}
