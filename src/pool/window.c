#include "pool/window.h"

static bool usable(const struct spw_extent *extent, const struct spw_window_search *search)
{
    return spw_pool_window_usable(extent, search->kind, search->queue);
}

static void consider(const struct spw_backing *backing, struct spw_window *best,
                     struct spw_window window)
{
    window.missing =
        spw_pool_backing_missing(backing, window.address, window.address + window.bytes);
    if (best->bytes == 0 || window.missing < best->missing ||
        (window.missing == best->missing && window.slack < best->slack)) {
        *best = window;
    }
}

/* Considers both ends of the run of usable extents that begins with `first`, the preferred end for
 * blocks of this size first. A run that reaches the frontier may continue behind it. */
static void consider_run(const struct spw_backing *backing, const struct spw_window_search *search,
                         struct spw_extent *first, struct spw_window *best)
{
    struct spw_extent *last = first;
    uint64_t bytes = search->bytes, end;

    while (last->next != NULL && usable(last->next, search)) {
        last = last->next;
    }
    end = spw_pool_extent_end(last);
    if (last->next == NULL) {
        if (search->heap->end - first->address >= bytes) {
            consider(backing, best,
                     (struct spw_window){first->address, bytes, UINT64_MAX, 0, first});
        }
    } else if (end - first->address >= bytes) {
        bool high = spw_pool_window_goes_high(backing, bytes);
        uint64_t slack = end - first->address - bytes;
        uint64_t preferred = high ? end - bytes : first->address;
        uint64_t other = high ? first->address : end - bytes;

        consider(backing, best, (struct spw_window){preferred, bytes, slack, 0, first});
        consider(backing, best, (struct spw_window){other, bytes, slack, 0, first});
    }
}

static void consider_list(const struct spw_backing *backing, const struct spw_window_search *search,
                          const struct spw_age_list *list, struct spw_window *best)
{
    for (struct spw_extent *e = list->oldest; e != NULL; e = e->age.next) {
        if (e->heap == search->class && usable(e, search) &&
            (e->prev == NULL || !usable(e->prev, search))) {
            consider_run(backing, search, e, best);
        }
    }
}

struct spw_window spw_pool_window_best(const struct spw_backing *backing,
                                       const struct spw_window_search *search)
{
    const struct spw_heap *heap = search->heap;
    struct spw_window best = {0};

    consider_list(backing, search, &heap->holes, &best);
    if (search->kind != SPW_WINDOW_FRESH) {
        consider_list(backing, search, &spw_pool_stream_queue_idle(backing->queues)->extents,
                      &best);
    }
    if (search->kind != SPW_WINDOW_FRESH && search->queue != NULL) {
        consider_list(backing, search, &search->queue->extents, &best);
    }
    if ((heap->last == NULL || !usable(heap->last, search)) &&
        heap->end - heap->frontier >= search->bytes) {
        consider(backing, &best,
                 (struct spw_window){heap->frontier, search->bytes, UINT64_MAX, 0, NULL});
    }
    return best;
}
