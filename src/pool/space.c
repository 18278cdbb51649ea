#include "pool/space.h"

#include "pool/window.h"

#include <string.h>

/* ---- lists ---- */

static struct spw_heap *heap_of(struct spw_space *space, const struct spw_extent *extent)
{
    return &space->heaps[extent->heap];
}

static void link_after(struct spw_heap *heap, struct spw_extent *prev, struct spw_extent *extent)
{
    extent->prev = prev;
    extent->next = prev != NULL ? prev->next : heap->first;
    if (extent->next != NULL) {
        extent->next->prev = extent;
    } else {
        heap->last = extent;
    }
    if (prev != NULL) {
        prev->next = extent;
    } else {
        heap->first = extent;
    }
}

static void unlink_extent(struct spw_heap *heap, struct spw_extent *extent)
{
    if (extent->prev != NULL) {
        extent->prev->next = extent->next;
    } else {
        heap->first = extent->next;
    }
    if (extent->next != NULL) {
        extent->next->prev = extent->prev;
    } else {
        heap->last = extent->prev;
    }
}

/* Takes a free extent or a hole out of the indexes; it stays in the address order. */
static void unindex(struct spw_space *space, struct spw_extent *extent)
{
    if (extent->kind == SPW_EXTENT_HOLE) {
        spw_pool_age_remove(&heap_of(space, extent)->holes, extent);
        return;
    }
    if (extent->host) {
        space->host_extents--;
    } else {
        spw_pool_bins_remove(&extent->lane->bins[extent->heap], extent);
    }
    spw_pool_age_remove(&extent->lane->extents, extent);
}

/* Whether the extent, free or about to be, lies on the host in part, where it should not. */
static bool is_on_host(const struct spw_space *space, const struct spw_extent *extent)
{
    return extent->kind == SPW_EXTENT_FREE && extent->heap != SPW_HEAP_HOST &&
           spw_pool_backing_uses_host(space->backing) &&
           spw_pool_backing_on_host(space->backing, extent->address, spw_pool_extent_end(extent));
}

/* Enters a free extent, whose `host` is known, or a hole in the indexes. */
static void index_extent(struct spw_space *space, struct spw_extent *extent)
{
    if (extent->kind == SPW_EXTENT_HOLE) {
        spw_pool_age_append(&heap_of(space, extent)->holes, extent);
        return;
    }
    if (extent->host) {
        space->host_extents++;
    } else {
        spw_pool_bins_insert(&extent->lane->bins[extent->heap], extent);
    }
    spw_pool_age_append(&extent->lane->extents, extent);
}

/* The same for what was cut off. */
static void index_part(struct spw_space *space, struct spw_extent *extent)
{
    extent->host = is_on_host(space, extent);
    index_extent(space, extent);
}

static void remove_extent(struct spw_space *space, struct spw_extent *extent)
{
    unlink_extent(heap_of(space, extent), extent);
    spw_pool_extent_give(&space->store, extent);
}

void spw_pool_space_rehost(struct spw_space *space, struct spw_extent *extent)
{
    bool host = is_on_host(space, extent);

    if (host == extent->host) {
        return;
    }
    if (host) {
        spw_pool_bins_remove(&extent->lane->bins[extent->heap], extent);
        space->host_extents++;
    } else {
        space->host_extents--;
        spw_pool_bins_insert(&extent->lane->bins[extent->heap], extent);
    }
    extent->host = host;
}

/* ---- joining ---- */

static bool is_stream(const struct spw_stream_queue *lane)
{
    return lane->number >= SPW_STREAM_QUEUE_FIRST_STREAM;
}

/* Whether `extent`, just freed or turned into a hole, may swallow `other`. With one stream in the
 * process nobody else could use idle memory, so it joins the stream's own and fits more. */
static bool can_swallow(const struct spw_space *space, const struct spw_extent *extent,
                        const struct spw_extent *other)
{
    if (other == NULL || other->kind != extent->kind || other->host != extent->host) {
        return false;
    }
    if (extent->kind == SPW_EXTENT_HOLE || other->lane == extent->lane) {
        return true;
    }
    return space->lanes->streams == 1 && is_stream(extent->lane) &&
           other->lane->number == SPW_STREAM_QUEUE_IDLE;
}

static void swallow(struct spw_space *space, struct spw_extent *extent, struct spw_extent *other)
{
    unindex(space, other);
    if (other->address < extent->address) {
        extent->address = other->address;
    }
    extent->bytes += other->bytes;
    if (extent->kind == SPW_EXTENT_FREE && other->lane == extent->lane &&
        other->seq > extent->seq) {
        extent->seq = other->seq;
    }
    remove_extent(space, other);
}

/* Joins a free extent or hole, linked but not indexed, with its neighbours, and indexes it. There
 * can be several on a side: idle ones, and behind them the lane's own. */
static void settle_in(struct spw_space *space, struct spw_extent *extent)
{
    extent->host = is_on_host(space, extent);
    while (can_swallow(space, extent, extent->prev)) {
        swallow(space, extent, extent->prev);
    }
    while (can_swallow(space, extent, extent->next)) {
        swallow(space, extent, extent->next);
    }
    index_extent(space, extent);
}

/* ---- cutting ---- */

/* Cuts the extent at `address`, inside it: the record keeps the lower part and the upper part, of
 * the same kind and order, follows it. Neither is indexed. */
static struct spw_extent *cut(struct spw_space *space, struct spw_extent *extent, uint64_t address)
{
    struct spw_extent *upper = spw_pool_extent_take(&space->store);

    *upper = *extent;
    upper->address = address;
    upper->bytes = spw_pool_extent_end(extent) - address;
    extent->bytes = address - extent->address;
    link_after(heap_of(space, extent), extent, upper);
    return upper;
}

/* Whether two granules are alike as far as the extents on them are concerned. */
static bool alike(const struct spw_granule *a, const struct spw_granule *b)
{
    return (a->chunk != 0) == (b->chunk != 0) && a->broken == b->broken && a->tier == b->tier;
}

/* Gives a claim its true kinds, granule by granule, from what is backed now. It is linked but not
 * indexed; lane and seq are those of its free parts. */
static void rebuild(struct spw_space *space, struct spw_extent *extent)
{
    const struct spw_backing *backing = space->backing;

    /* The lane may have been settled while the claim was out of its list. */
    if (spw_pool_stream_queue_passed(space->lanes, extent->lane->number, extent->seq)) {
        extent->lane = spw_pool_stream_queue_idle(space->lanes);
    }
    for (struct spw_extent *rest = extent; extent != NULL; extent = rest) {
        uint64_t end = spw_pool_extent_end(extent), at = extent->address;
        const struct spw_granule *first = &backing->granules[spw_pool_backing_index(backing, at)];

        do {
            at = spw_pool_backing_down(backing, at) + backing->granule_bytes;
        } while (at < end && alike(first, &backing->granules[spw_pool_backing_index(backing, at)]));
        rest = at < end ? cut(space, extent, at) : NULL;
        extent->kind = first->broken       ? SPW_EXTENT_CLAIM
                       : first->chunk != 0 ? SPW_EXTENT_FREE
                                           : SPW_EXTENT_HOLE;
        if (!first->broken) {
            settle_in(space, extent);
        }
    }
}

/* Most pieces that rebuilding `bytes` of addresses can give. */
static size_t most_pieces(const struct spw_space *space, uint64_t bytes)
{
    return (size_t)(bytes / space->backing->granule_bytes) + 4;
}

/* Makes a free extent, linked but not indexed, what it is: out of use as far as it is broken, or
 * all of it when the host has no memory for records. */
static void sift(struct spw_space *space, struct spw_extent *extent)
{
    extent->kind = SPW_EXTENT_CLAIM;
    if (spw_pool_extent_reserve(&space->store, most_pieces(space, extent->bytes))) {
        rebuild(space, extent);
    }
}

void spw_pool_space_condemn(struct spw_space *space, struct spw_extent *extent)
{
    unindex(space, extent);
    sift(space, extent);
}

void spw_pool_space_revive(struct spw_space *space)
{
    for (int i = 0; i < SPW_HEAP_COUNT; i++) {
        for (struct spw_extent *e = space->heaps[i].first; e != NULL; e = e->next) {
            if (e->kind == SPW_EXTENT_CLAIM &&
                !spw_pool_backing_is_broken(space->backing, e->address, spw_pool_extent_end(e))) {
                sift(space, e);
            }
        }
    }
}

/* ---- life ---- */

static void lay_out(struct spw_heap *heap, uint64_t *base, uint64_t end)
{
    *heap = (struct spw_heap){.base = *base, .frontier = *base, .end = end};
    *base = end;
}

void spw_pool_space_init(struct spw_space *space, struct spw_stream_queues *lanes,
                         struct spw_backing *backing, bool host, uint32_t regions)
{
    /* An eighth for small blocks is far more than their share of memory ever is. */
    enum { PARTS = 8 };
    uint32_t more = (host ? 1 : 0) + regions;
    uint64_t part = spw_pool_backing_up(backing, backing->bytes / (PARTS + more));
    uint64_t at = backing->base, end = backing->base + backing->bytes;

    memset(space, 0, sizeof(*space));
    space->lanes = lanes;
    space->backing = backing;
    lay_out(&space->heaps[SPW_HEAP_SMALL], &at, at + part);
    lay_out(&space->heaps[SPW_HEAP_LARGE], &at, end - more * part);
    lay_out(&space->heaps[SPW_HEAP_HOST], &at, at + (host ? part : 0));
    for (uint32_t i = 0; i < SPW_REGIONS; i++) {
        lay_out(&space->heaps[SPW_HEAP_REGION + i], &at, at + (i < regions ? part : 0));
    }
}

void spw_pool_space_fini(struct spw_space *space)
{
    spw_pool_extent_store_fini(&space->store);
}

/* ---- blocks ---- */

static struct spw_extent *begin_block(struct spw_space *space, struct spw_extent *extent)
{
    extent->kind = SPW_EXTENT_BLOCK;
    space->backing->granules[spw_pool_backing_index(space->backing, extent->address)].start =
        extent;
    return extent;
}

struct spw_extent *spw_pool_space_best(const struct spw_space *space, enum spw_heap_class heap,
                                       uint64_t bytes, const struct spw_stream_queue *lane)
{
    struct spw_extent *idle =
        spw_pool_bins_best(&spw_pool_stream_queue_idle(space->lanes)->bins[heap], bytes);
    struct spw_extent *own = lane != NULL ? spw_pool_bins_best(&lane->bins[heap], bytes) : NULL;

    if (idle == NULL || (own != NULL && own->bytes <= idle->bytes)) {
        return own;
    }
    return idle;
}

struct spw_extent *spw_pool_space_take(struct spw_space *space, struct spw_extent *extent,
                                       uint64_t bytes)
{
    if (!spw_pool_extent_reserve(&space->store, 1)) {
        return NULL;
    }
    if (extent->bytes > bytes) {
        /* The rest keeps its place by age; only its bin changes. */
        struct spw_extent *block = spw_pool_extent_take(&space->store);
        bool high = spw_pool_window_goes_high(space, bytes);

        block->address = high ? spw_pool_extent_end(extent) - bytes : extent->address;
        block->bytes = bytes;
        block->heap = extent->heap;
        extent->address += high ? 0 : bytes;
        spw_pool_bins_resize(&extent->lane->bins[extent->heap], extent, extent->bytes - bytes);
        link_after(heap_of(space, extent), high ? extent : extent->prev, block);
        return begin_block(space, block);
    }
    unindex(space, extent);
    return begin_block(space, extent);
}

void spw_pool_space_free(struct spw_space *space, struct spw_extent *block,
                         struct spw_stream_queue *lane)
{
    spw_pool_backing_stamp(space->backing, block->address, spw_pool_extent_end(block), lane);
    block->kind = SPW_EXTENT_FREE;
    block->lane = lane;
    block->seq = lane->seq;
    if (__builtin_expect(space->backing->broken > 0, 0) &&
        spw_pool_backing_is_broken(space->backing, block->address, spw_pool_extent_end(block))) {
        sift(space, block);
    } else {
        settle_in(space, block);
    }
}

void spw_pool_space_vacate(struct spw_space *space, struct spw_extent *block)
{
    block->kind = SPW_EXTENT_HOLE;
    settle_in(space, block);
}

bool spw_pool_space_can_cut(struct spw_space *space)
{
    return spw_pool_extent_reserve(&space->store, 1);
}

void spw_pool_space_cut_tail(struct spw_space *space, struct spw_extent *block, uint64_t bytes)
{
    struct spw_extent *tail;

    if (block->bytes > bytes) {
        tail = cut(space, block, block->address + bytes);
        tail->kind = SPW_EXTENT_FREE;
        tail->lane = spw_pool_stream_queue_idle(space->lanes);
        tail->seq = tail->lane->seq;
        settle_in(space, tail);
    }
}

void spw_pool_space_settle(struct spw_space *space, struct spw_stream_queue *lane)
{
    struct spw_stream_queue *idle = spw_pool_stream_queue_idle(space->lanes);

    while (lane->extents.oldest != NULL && lane->extents.oldest->seq <= lane->done) {
        struct spw_extent *extent = lane->extents.oldest;

        unindex(space, extent);
        extent->lane = idle;
        settle_in(space, extent);
    }
    spw_pool_stream_queue_collect(space->lanes, lane);
}

/* An extent near `address`: what a granule, the address's own or the next one below that knows,
 * remembers of the block that began in it last. Its record may be another extent's by now; any will
 * do that still touches the granule. */
static struct spw_extent *find_near(const struct spw_space *space, const struct spw_heap *heap,
                                    uint64_t address)
{
    const struct spw_backing *backing = space->backing;
    uint64_t granule = spw_pool_backing_down(backing, address);

    for (; granule >= heap->base; granule -= backing->granule_bytes) {
        struct spw_extent *e = backing->granules[spw_pool_backing_index(backing, granule)].start;

        if (e != NULL && e->bytes > 0 && e->address < granule + backing->granule_bytes &&
            spw_pool_extent_end(e) > granule) {
            return e;
        }
    }
    return heap->first;
}

static const struct spw_heap *heap_at(const struct spw_space *space, uint64_t address)
{
    for (int i = 0; i < SPW_HEAP_COUNT; i++) {
        if (address >= space->heaps[i].base && address < space->heaps[i].frontier) {
            return &space->heaps[i];
        }
    }
    return NULL;
}

/* The first extent of the first heap from this one on that has any. */
static struct spw_extent *first_from(const struct spw_space *space, int heap)
{
    struct spw_extent *first = NULL;

    for (; heap < SPW_HEAP_COUNT && first == NULL; heap++) {
        first = heap != SPW_HEAP_HOST ? space->heaps[heap].first : NULL;
    }
    return first;
}

struct spw_extent *spw_pool_space_first_large(const struct spw_space *space)
{
    return first_from(space, SPW_HEAP_LARGE);
}

struct spw_extent *spw_pool_space_next_large(const struct spw_space *space,
                                             const struct spw_extent *extent)
{
    return extent->next != NULL ? extent->next : first_from(space, extent->heap + 1);
}

struct spw_extent *spw_pool_space_find(const struct spw_space *space, uint64_t address)
{
    const struct spw_heap *heap = heap_at(space, address);
    struct spw_extent *e;

    if (heap == NULL) {
        return NULL;
    }
    e = find_near(space, heap, address);
    while (e->address > address) {
        e = e->prev;
    }
    while (spw_pool_extent_end(e) <= address) {
        e = e->next;
    }
    return e;
}

/* ---- claims ---- */

/* Moves the frontier so that the last extent, a hole, reaches `end`. */
static struct spw_extent *advance(struct spw_space *space, struct spw_heap *heap, uint64_t end)
{
    struct spw_extent *hole = spw_pool_extent_take(&space->store);

    hole->address = heap->frontier;
    hole->bytes = end - heap->frontier;
    hole->heap = (uint8_t)(heap - space->heaps);
    hole->kind = SPW_EXTENT_HOLE;
    link_after(heap, heap->last, hole);
    heap->frontier = end;
    settle_in(space, hole);
    return hole;
}

/* Turns [address, end), all usable, into one claim that begins in `extent`. */
static struct spw_extent *claim_range(struct spw_space *space, struct spw_extent *extent,
                                      uint64_t address, uint64_t end)
{
    struct spw_extent *claim;
    struct spw_stream_queue *lane = spw_pool_stream_queue_idle(space->lanes);

    while (spw_pool_extent_end(extent) <= address) {
        extent = extent->next;
    }
    unindex(space, extent);
    claim = extent;
    if (extent->address < address) {
        claim = cut(space, extent, address);
        index_part(space, extent);
    }
    for (;;) {
        if (claim->kind == SPW_EXTENT_FREE && claim->lane->number != SPW_STREAM_QUEUE_IDLE) {
            lane = claim->lane;
        }
        if (spw_pool_extent_end(claim) >= end) {
            break;
        }
        extent = claim->next;
        unindex(space, extent);
        claim->bytes += extent->bytes;
        claim->kind = extent->kind;
        claim->lane = extent->kind == SPW_EXTENT_FREE ? extent->lane : lane;
        claim->seq = extent->seq;
        remove_extent(space, extent);
    }
    if (spw_pool_extent_end(claim) > end) {
        index_part(space, cut(space, claim, end));
    }
    claim->kind = SPW_EXTENT_CLAIM;
    claim->lane = lane;
    claim->seq = lane->seq;
    return claim;
}

enum spw_err spw_pool_space_claim(struct spw_space *space, enum spw_heap_class class,
                                  uint64_t bytes, const struct spw_stream_queue *lane,
                                  enum spw_window_kind kind, struct spw_extent **ret_claim)
{
    struct spw_heap *heap = &space->heaps[class];
    struct spw_backing *backing = space->backing;
    struct spw_window window;
    uint64_t end;

    if (kind == SPW_WINDOW_FRESH) {
        bytes = spw_pool_backing_up(backing, bytes); /* holes begin and end with a granule */
    }
    window = spw_pool_window_best(space, heap, bytes, lane, kind);
    if (window.bytes == 0) {
        return SPW_E_NO_MEMORY;
    }
    if (!spw_pool_extent_reserve(&space->store, most_pieces(space, bytes) + 3)) {
        return SPW_E_METADATA_NOMEM;
    }
    space->store.held = most_pieces(space, bytes);
    /* Where a window begins or ends in a hole, the whole granule is taken and backed. */
    if (!spw_pool_backing_has(backing, window.address)) {
        window.address = spw_pool_backing_down(backing, window.address);
    }
    end = window.address + bytes;
    if (!spw_pool_backing_has(backing, end - 1)) {
        end = spw_pool_backing_up(backing, end);
    }
    if (end > heap->frontier) {
        struct spw_extent *hole = advance(space, heap, spw_pool_backing_up(backing, end));

        if (window.first == NULL || hole->address <= window.first->address) {
            window.first = hole;
        }
    }
    *ret_claim = claim_range(space, window.first, window.address, end);
    return SPW_OK;
}

void spw_pool_space_unclaim(struct spw_space *space, struct spw_extent *claim)
{
    space->store.held = 0;
    rebuild(space, claim);
}

struct spw_extent *spw_pool_space_settle_claim(struct spw_space *space, struct spw_extent *claim,
                                               uint64_t bytes)
{
    space->store.held = 0;
    if (claim->bytes > bytes) {
        rebuild(space, cut(space, claim, claim->address + bytes));
    }
    return begin_block(space, claim);
}

/* ---- stealing ---- */

static size_t steal_from(struct spw_space *space, enum spw_tier tier, struct spw_extent *extent,
                         size_t count)
{
    size_t taken;

    if (!spw_pool_extent_reserve(&space->store, most_pieces(space, extent->bytes))) {
        return 0;
    }
    taken = spw_pool_backing_steal(space->backing, tier, extent->address,
                                   spw_pool_extent_end(extent), count);
    if (taken > 0) {
        unindex(space, extent);
        extent->kind = SPW_EXTENT_CLAIM; /* no piece joins the rest before its turn */
        rebuild(space, extent);
    }
    return taken;
}

/* Whether an extent with `has` chunks to take is a better choice than one with `best`, for `count`:
 * the smallest that has enough, else the largest. So few extents are broken up, in few ranges. */
static bool is_better(size_t has, size_t best, size_t count)
{
    return best < count ? has > best : has >= count && has < best;
}

static struct spw_extent *best_victim(const struct spw_space *space, enum spw_heap_class class,
                                      size_t count)
{
    const struct spw_backing *backing = space->backing;
    struct spw_extent *victim = NULL;
    size_t best = 0;

    for (uint32_t i = 0; i < space->lanes->count; i++) {
        for (struct spw_extent *e = space->lanes->by_number[i]->extents.oldest; e != NULL;
             e = e->age.next) {
            size_t most = (size_t)(e->bytes >> backing->granule_shift), has;

            if (e->heap != class || (most < count ? most <= best : best == count)) {
                continue; /* not to be counted in vain */
            }
            has = spw_pool_backing_stealable(backing, e->address, spw_pool_extent_end(e));
            if (is_better(has, best, count)) {
                victim = e;
                best = has;
            }
        }
    }
    return victim;
}

static size_t steal_from_heap(struct spw_space *space, enum spw_heap_class class, size_t count)
{
    size_t taken = 0;

    while (taken < count) {
        struct spw_extent *victim = best_victim(space, class, count - taken);
        size_t got = victim != NULL ? steal_from(space, SPW_TIER_DEVICE, victim, count - taken) : 0;

        if (got == 0) {
            break;
        }
        taken += got;
    }
    return taken;
}

size_t spw_pool_space_steal(struct spw_space *space, size_t count)
{
    size_t taken = steal_from_heap(space, SPW_HEAP_LARGE, count);

    for (int i = 0; i < SPW_REGIONS && taken < count; i++) {
        if (space->heaps[SPW_HEAP_REGION + i].first != NULL) {
            taken += steal_from_heap(space, SPW_HEAP_REGION + i, count - taken);
        }
    }
    if (taken < count) {
        taken += steal_from_heap(space, SPW_HEAP_SMALL, count - taken);
    }
    return taken;
}

/* Takes every chunk of the host that is free in a heap. */
static void shed_heap(struct spw_space *space, struct spw_heap *heap)
{
    struct spw_extent *e = heap->last;

    while (e != NULL) {
        uint64_t address = e->address;

        if (e->kind == SPW_EXTENT_FREE && (e->host || e->heap == SPW_HEAP_HOST)) {
            (void)steal_from(space, SPW_TIER_HOST, e, SIZE_MAX);
        }
        /* What is left of it may have joined the extent below: then that is yet to be looked at. */
        if (e->address == address) {
            e = e->prev;
        }
    }
}

void spw_pool_space_shed(struct spw_space *space)
{
    for (int i = 0; i < SPW_HEAP_COUNT && space->host_extents > 0; i++) {
        if (i != SPW_HEAP_HOST) {
            shed_heap(space, &space->heaps[i]);
        }
    }
}

void spw_pool_space_shed_host(struct spw_space *space)
{
    shed_heap(space, &space->heaps[SPW_HEAP_HOST]);
}
