#include "pool/space/window.h"

static bool usable(const struct spw_extent *extent, const struct spw_window_search *search)
{
    return spw_pool_window_usable(extent, search->kind, search->queue);
}

/* Returns the number of granules of a window that must be backed on the device, or unmapped. */
static size_t work_of(const struct spw_window_search *search, const struct spw_window *window)
{
    return window->missing > search->wanted ? window->missing - search->wanted
                                            : search->wanted - window->missing;
}

static bool is_better(const struct spw_window_search *search, const struct spw_window *window,
                      const struct spw_window *than)
{
    size_t work = work_of(search, window), least = work_of(search, than);

    if (work != least) {
        return work < least;
    }
    return window->missing != than->missing ? window->missing < than->missing
                                            : window->slack < than->slack;
}

static void consider(const struct spw_backing *backing, const struct spw_window_search *search,
                     struct spw_window *best, struct spw_window window)
{
    window.missing =
        spw_pool_backing_missing(backing, window.address, window.address + window.bytes);
    if (best->bytes == 0 || is_better(search, &window, best)) {
        *best = window;
    }
}

/* Considers both ends of the run of usable extents that begins with `first`. The end that is
 * preferred for blocks of this size is considered first. A run that reaches the frontier may
 * continue behind it. */
static void consider_run(const struct spw_backing *backing, const struct spw_window_search *search,
                         struct spw_extent *first, struct spw_window *best)
{
    struct spw_extent *last = first;
    uint64_t bytes = search->bytes, begin = first->address, end;

    while (last->next != NULL && usable(last->next, search)) {
        last = last->next;
    }
    end = spw_pool_extent_end(last);
    if (spw_pool_window_is_whole(search->kind)) {
        begin = spw_pool_backing_up(backing, begin);
        end = spw_pool_backing_down(backing, end);
    }
    if (last->next == NULL) {
        if (search->heap->end - begin >= bytes) {
            consider(backing, search, best,
                     (struct spw_window){begin, bytes, UINT64_MAX, 0, first});
        }
    } else if (end >= begin && end - begin >= bytes) {
        bool high = spw_pool_window_goes_high(backing, bytes);
        uint64_t slack = end - begin - bytes;
        uint64_t preferred = high ? end - bytes : begin;
        uint64_t other = high ? begin : end - bytes;

        consider(backing, search, best, (struct spw_window){preferred, bytes, slack, 0, first});
        consider(backing, search, best, (struct spw_window){other, bytes, slack, 0, first});
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
        consider(backing, search, &best,
                 (struct spw_window){heap->frontier, search->bytes, UINT64_MAX, 0, NULL});
    }
    return best;
}
