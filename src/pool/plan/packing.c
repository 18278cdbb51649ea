#include "pool/plan/packing.h"

#include "common/grow.h"

#include <stdlib.h>
#include <string.h>

/* The circle of time is divided into parts. Most blocks live in only one part, and are compared
 * only with the blocks of that part. */
enum { PARTS = 16, ALL = PARTS, LISTS };

/* The orders of placing the blocks. */
enum order { BY_SIZE, BY_PEAK, BY_LENGTH, ORDERS };

/* The number of rounds for one order. Each round moves blocks with high addresses forward in the
 * order. If there are many blocks, there are fewer rounds. */
enum { ROUNDS = 128, ROUNDS_ITEMS = 1 << 17 };

/* An item with its rank. Items with higher ranks are placed first. Among items of equal rank, the
 * item that begins earlier is placed first. */
struct ranked {
    struct spw_packing_item *item;
    double rank;
};

/* Items in ascending order of addresses. */
struct list {
    struct spw_packing_item **items;
    size_t count, capacity;
};

struct attempt {
    const struct spw_packing *packing;
    uint64_t base; /* lowest address for items */
    struct list lists[LISTS];
};

/* ---- time ---- */

static bool lives_always(const struct spw_packing *packing, const struct spw_packing_item *item)
{
    return item->fixed || item->length >= packing->period;
}

/* Returns the time from point `from` to point `to`. */
static uint32_t distance(uint32_t period, uint32_t from, uint32_t to)
{
    return to >= from ? to - from : to + period - from;
}

static bool live_together(const struct spw_packing *packing, const struct spw_packing_item *a,
                          const struct spw_packing_item *b)
{
    return lives_always(packing, a) || lives_always(packing, b) ||
           distance(packing->period, a->begin, b->begin) < a->length ||
           distance(packing->period, b->begin, a->begin) < b->length;
}

static size_t part_of(const struct spw_packing *packing, uint64_t point)
{
    return (size_t)(point % packing->period * PARTS / packing->period);
}

/* Finds the parts of the period in which an item is live. *ret_first is the first part. Returns the
 * number of parts that follow; after the last part comes part 0. */
static size_t parts_of(const struct spw_packing *packing, const struct spw_packing_item *item,
                       size_t *ret_first)
{
    size_t last;

    *ret_first = 0;
    if (lives_always(packing, item)) {
        return PARTS - 1;
    }
    *ret_first = part_of(packing, item->begin);
    last = part_of(packing, (uint64_t)item->begin + item->length - 1);
    if (last == *ret_first && item->length > packing->period / PARTS + 1) {
        return PARTS - 1; /* around the circle, to the part of its begin */
    }
    return (last + PARTS - *ret_first) % PARTS;
}

/* ---- lists ---- */

static bool insert(struct list *list, struct spw_packing_item *item)
{
    size_t low = 0, high = list->count;

    if (!SPW_GROW(&list->items, &list->capacity, list->count + 1)) {
        return false;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (list->items[middle]->address < item->address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    memmove(&list->items[low + 1], &list->items[low], (list->count - low) * sizeof(list->items[0]));
    list->items[low] = item;
    list->count++;
    return true;
}

/* Adds a placed item to the list of all items and to the lists of its parts. */
static bool add(struct attempt *attempt, struct spw_packing_item *item)
{
    size_t first, more = parts_of(attempt->packing, item, &first);
    bool added = insert(&attempt->lists[ALL], item);

    for (size_t i = 0; i <= more && added; i++) {
        added = insert(&attempt->lists[(first + i) % PARTS], item);
    }
    return added;
}

/* ---- placing ---- */

/* Gives an item the smallest gap that fits between the items that live at the same time. If no gap
 * fits, gives it the addresses behind these items. Returns false if the item ends beyond the
 * range. */
static bool place(const struct attempt *attempt, struct spw_packing_item *item)
{
    const struct spw_packing *packing = attempt->packing;
    size_t first, more = parts_of(packing, item, &first);
    const struct list *list = &attempt->lists[more == 0 ? first : ALL];
    uint64_t at = attempt->base, best = UINT64_MAX;

    for (size_t i = 0; i < list->count; i++) {
        const struct spw_packing_item *other = list->items[i];

        if (!live_together(packing, item, other)) {
            continue;
        }
        if (other->address >= at + item->bytes && other->address - at < best) {
            best = other->address - at;
            item->address = at;
        }
        if (other->address + other->bytes > at) {
            at = other->address + other->bytes;
        }
    }
    if (best == UINT64_MAX) {
        item->address = at;
    }
    return item->address + item->bytes <= packing->end;
}

static int compare(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;

    if (left->rank != right->rank) {
        return left->rank > right->rank ? -1 : 1;
    }
    return left->item->begin < right->item->begin ? -1 : left->item->begin > right->item->begin;
}

/* Returns the memory of all placed items. `enough_bytes` of this memory are below the address
 * *ret_top. */
static uint64_t memory_of(const struct attempt *attempt, uint64_t *ret_top)
{
    const struct list *all = &attempt->lists[ALL];
    uint64_t enough = attempt->packing->enough_bytes;
    uint64_t mask = attempt->packing->granule_bytes - 1, bytes = 0, covered = 0;

    *ret_top = UINT64_MAX;
    for (size_t i = 0; i < all->count; i++) {
        uint64_t first = all->items[i]->address & ~mask;
        uint64_t end = (all->items[i]->address + all->items[i]->bytes + mask) & ~mask;

        first = first > covered ? first : covered;
        if (end <= first) {
            continue;
        }
        if (bytes <= enough && bytes + (end - first) > enough) {
            *ret_top = first + (enough - bytes);
        }
        bytes += end - first;
        covered = end;
    }
    return bytes;
}

static bool place_all(struct attempt *attempt, const struct ranked *sorted, size_t count)
{
    for (int i = 0; i < LISTS; i++) {
        attempt->lists[i].count = 0;
    }
    for (size_t i = 0; i < attempt->packing->count; i++) {
        struct spw_packing_item *item = &attempt->packing->items[i];

        if (item->fixed && !add(attempt, item)) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!place(attempt, sorted[i].item) || !add(attempt, sorted[i].item)) {
            return false;
        }
    }
    return true;
}

/* ---- orders ---- */

/* The best packing so far. */
struct best {
    uint64_t bytes; /* UINT64_MAX: none yet */
    uint64_t *addresses;
};

static void keep(struct best *best, const struct spw_packing *packing, uint64_t bytes)
{
    best->bytes = bytes;
    for (size_t i = 0; i < packing->count; i++) {
        best->addresses[i] = packing->items[i].address;
    }
}

/* Finds the points in time with the most and with the fewest live bytes. */
static void find_extremes(const struct spw_packing *packing, int64_t *changes, uint32_t *ret_most,
                          uint32_t *ret_least)
{
    int64_t live = 0, most = 0, least = INT64_MAX;

    for (size_t i = 0; i < packing->count; i++) {
        const struct spw_packing_item *item = &packing->items[i];

        if (!lives_always(packing, item)) {
            uint32_t end = item->begin + item->length;

            changes[item->begin] += (int64_t)item->bytes;
            changes[end % packing->period] -= (int64_t)item->bytes;
            live += end > packing->period ? (int64_t)item->bytes : 0;
        }
    }
    for (uint32_t point = 0; point < packing->period; point++) {
        live += changes[point];
        if (live > most) {
            most = live;
            *ret_most = point;
        }
        if (live < least) {
            least = live;
            *ret_least = point;
        }
    }
}

/* Shifts time so that it begins at `begin`. Among blocks of one size, the earlier one is placed
 * first. This is a good order only if few blocks live across the beginning. */
static void turn(const struct spw_packing *packing, uint32_t begin)
{
    for (size_t i = 0; i < packing->count; i++) {
        packing->items[i].begin = distance(packing->period, begin, packing->items[i].begin);
    }
}

static double rank_of(const struct spw_packing *packing, const struct spw_packing_item *item,
                      enum order order, uint32_t peak)
{
    const double above_all = 1e18;

    if (order == BY_LENGTH) {
        return item->length;
    }
    return (double)item->bytes +
           (order == BY_PEAK && (lives_always(packing, item) ||
                                 distance(packing->period, item->begin, peak) < item->length)
                ? above_all
                : 0);
}

/* Moves the items that end above `top` forward in the order. Returns false if there are none. */
static bool promote(struct ranked *sorted, size_t count, uint64_t top)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (sorted[i].item->address + sorted[i].item->bytes > top) {
            sorted[i].rank = 2 * sorted[i].rank + (double)sorted[i].item->bytes;
            any = true;
        }
    }
    return any;
}

static void try_order(struct attempt *attempt, struct ranked *sorted, size_t count,
                      struct best *best)
{
    const struct spw_packing *packing = attempt->packing;
    int rounds = count > 0 && ROUNDS_ITEMS / count < ROUNDS ? (int)(ROUNDS_ITEMS / count) : ROUNDS;
    uint64_t bytes, top;

    for (int round = 0; round <= rounds && best->bytes > packing->enough_bytes; round++) {
        qsort(sorted, count, sizeof(sorted[0]), compare);
        if (!place_all(attempt, sorted, count)) {
            return;
        }
        bytes = memory_of(attempt, &top);
        if (bytes < best->bytes) {
            keep(best, packing, bytes);
        }
        if (!promote(sorted, count, top)) {
            return;
        }
    }
}

static void try_orders(struct attempt *attempt, struct ranked *sorted, uint32_t peak,
                       struct best *best)
{
    const struct spw_packing *packing = attempt->packing;

    for (int order = 0; order < ORDERS && best->bytes > packing->enough_bytes; order++) {
        size_t count = 0;

        for (size_t i = 0; i < packing->count; i++) {
            struct spw_packing_item *item = &packing->items[i];

            if (!item->fixed) {
                sorted[count++] =
                    (struct ranked){item, rank_of(packing, item, (enum order)order, peak)};
            }
        }
        try_order(attempt, sorted, count, best);
    }
}

/* Returns the first address behind all fixed items. */
static uint64_t behind_fixed(const struct spw_packing *packing)
{
    uint64_t end = packing->base;

    for (size_t i = 0; i < packing->count; i++) {
        const struct spw_packing_item *item = &packing->items[i];

        if (item->fixed && item->address + item->bytes > end) {
            end = item->address + item->bytes;
        }
    }
    return end;
}

static void try_places(struct attempt *attempt, struct ranked *sorted, int64_t *changes,
                       struct best *best)
{
    const struct spw_packing *packing = attempt->packing;
    uint32_t peak = 0, begin = 0;

    find_extremes(packing, changes, &peak, &begin);
    turn(packing, begin);
    peak = distance(packing->period, begin, peak);
    attempt->base = behind_fixed(packing);
    try_orders(attempt, sorted, peak, best);
    if (attempt->base > packing->base) {
        attempt->base = packing->base;
        try_orders(attempt, sorted, peak, best);
    }
}

bool spw_pool_packing_pack(struct spw_packing *packing, uint64_t *ret_bytes)
{
    struct ranked *sorted = malloc((packing->count + 1) * sizeof(*sorted));
    int64_t *changes = calloc(packing->period, sizeof(*changes));
    struct best best = {UINT64_MAX, malloc((packing->count + 1) * sizeof(uint64_t))};
    struct attempt attempt = {.packing = packing};

    if (sorted != NULL && changes != NULL && best.addresses != NULL) {
        try_places(&attempt, sorted, changes, &best);
    }
    for (size_t i = 0; i < packing->count && best.bytes != UINT64_MAX; i++) {
        packing->items[i].address = best.addresses[i];
    }
    for (int i = 0; i < LISTS; i++) {
        free(attempt.lists[i].items);
    }
    free(best.addresses);
    free(changes);
    free(sorted);
    *ret_bytes = best.bytes;
    return best.bytes != UINT64_MAX;
}
