#include "pool/space/space.h"

#include <string.h>

#include "common/likely.h"
#include "pool/space/heaps.h"

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

/* Removes a free extent or a hole from the indexes, but not from the address order. */
static void unindex(struct spw_space *space, struct spw_extent *extent)
{
    if (extent->kind == SPW_EXTENT_HOLE) {
        spw_pool_age_remove(&heap_of(space, extent)->holes, extent);
        return;
    }
    if (extent->host) {
        space->host_extents--;
    } else {
        spw_pool_shelf_remove(&extent->queue->shelves[extent->heap], extent);
    }
    spw_pool_age_remove(&extent->queue->extents, extent);
}

/* Returns true if a free extent is partly on the host, outside of the host's own heap. */
static bool is_on_host(const struct spw_space *space, const struct spw_extent *extent)
{
    return extent->kind == SPW_EXTENT_FREE && extent->heap != SPW_HEAP_HOST &&
           spw_pool_backing_uses_host(space->backing) &&
           spw_pool_backing_on_host(space->backing, extent->address, spw_pool_extent_end(extent));
}

/* Adds a hole, or a free extent whose `host` is up to date, to the indexes. */
static void index_extent(struct spw_space *space, struct spw_extent *extent)
{
    if (extent->kind == SPW_EXTENT_HOLE) {
        spw_pool_age_append(&heap_of(space, extent)->holes, extent);
        return;
    }
    if (extent->host) {
        space->host_extents++;
    } else {
        spw_pool_shelf_insert(&extent->queue->shelves[extent->heap], extent);
    }
    spw_pool_age_append(&extent->queue->extents, extent);
}

/* Sets `host` of a part that was cut off, and adds the part to the indexes. */
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

void spw_pool_space_update_tier(struct spw_space *space, struct spw_extent *extent)
{
    bool host = is_on_host(space, extent);

    if (host == extent->host) {
        return;
    }
    if (host) {
        spw_pool_shelf_remove(&extent->queue->shelves[extent->heap], extent);
        space->host_extents++;
    } else {
        space->host_extents--;
        spw_pool_shelf_insert(&extent->queue->shelves[extent->heap], extent);
    }
    extent->host = host;
}

/* ---- merging ---- */

static bool is_stream(const struct spw_stream_queue *queue)
{
    return queue->number >= SPW_STREAM_QUEUE_FIRST_STREAM;
}

/* Returns true if `extent`, which was just freed or turned into a hole, may absorb its neighbour
 * `other`. If the process has only one stream, idle memory joins the memory of that stream, because
 * no other stream needs it. */
static bool can_merge(const struct spw_space *space, const struct spw_extent *extent,
                      const struct spw_extent *other)
{
    if (other == NULL || other->kind != extent->kind || other->host != extent->host) {
        return false;
    }
    if (extent->kind == SPW_EXTENT_HOLE || other->queue == extent->queue) {
        return true;
    }
    return space->queues->streams == 1 && is_stream(extent->queue) &&
           other->queue->number == SPW_STREAM_QUEUE_IDLE;
}

static void merge(struct spw_space *space, struct spw_extent *extent, struct spw_extent *other)
{
    unindex(space, other);
    if (other->address < extent->address) {
        extent->address = other->address;
    }
    extent->bytes += other->bytes;
    if (extent->kind == SPW_EXTENT_FREE && other->queue == extent->queue &&
        other->seq > extent->seq) {
        extent->seq = other->seq;
    }
    remove_extent(space, other);
}

/* Merges a free extent or hole with its neighbours, and indexes it. The extent must be linked, and
 * must not be indexed. Each side can have several neighbours: idle extents, and behind these
 * extents of the queue. */
static void coalesce(struct spw_space *space, struct spw_extent *extent)
{
    extent->host = is_on_host(space, extent);
    while (can_merge(space, extent, extent->prev)) {
        merge(space, extent, extent->prev);
    }
    while (can_merge(space, extent, extent->next)) {
        merge(space, extent, extent->next);
    }
    index_extent(space, extent);
}

void spw_pool_space_join(struct spw_space *space, struct spw_extent *extent)
{
    bool indexed =
        extent != NULL && (extent->kind == SPW_EXTENT_FREE || extent->kind == SPW_EXTENT_HOLE);

    if (indexed &&
        (can_merge(space, extent, extent->prev) || can_merge(space, extent, extent->next))) {
        unindex(space, extent);
        coalesce(space, extent);
    }
}

/* ---- cutting ---- */

/* Cuts an extent in two at `address`. The record keeps the lower part. Returns the upper part,
 * which has the same kind and the same order of work, and is linked behind the lower part. Neither
 * part is indexed. */
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

/* Returns true if two granules may be in the same extent. */
static bool alike(const struct spw_granule *a, const struct spw_granule *b)
{
    return (a->chunk != 0) == (b->chunk != 0) && a->broken == b->broken && a->tier == b->tier;
}

/* Divides a claim by granules. A backed granule becomes a part of a free extent, a granule without
 * backing becomes a part of a hole, and a broken granule becomes a part of a claim. The claim is
 * linked but not indexed. Its `queue` and `seq` are those of its free parts. */
static void rebuild(struct spw_space *space, struct spw_extent *extent)
{
    const struct spw_backing *backing = space->backing;

    /* The queue's work may have completed while the claim was not in the queue's list. */
    if (spw_pool_stream_queue_passed(space->queues, extent->queue->number, extent->seq)) {
        extent->queue = spw_pool_stream_queue_idle(space->queues);
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
            coalesce(space, extent);
        }
    }
}

/* Returns the most extents that rebuilding `bytes` of addresses can produce. */
static size_t most_pieces(const struct spw_space *space, uint64_t bytes)
{
    return (size_t)(bytes / space->backing->granule_bytes) + 4;
}

/* Takes the broken granules of a free extent out of use. The extent is linked but not indexed. If
 * the process has no memory for records, takes the whole extent out of use. */
static void retire_broken(struct spw_space *space, struct spw_extent *extent)
{
    extent->kind = SPW_EXTENT_CLAIM;
    if (spw_pool_extent_reserve(&space->store, most_pieces(space, extent->bytes))) {
        rebuild(space, extent);
    }
}

void spw_pool_space_retire(struct spw_space *space, struct spw_extent *extent)
{
    unindex(space, extent);
    retire_broken(space, extent);
}

void spw_pool_space_reinstate(struct spw_space *space)
{
    for (int i = 0; i < SPW_HEAP_COUNT; i++) {
        for (struct spw_extent *e = space->heaps[i].first; e != NULL; e = e->next) {
            if (e->kind == SPW_EXTENT_CLAIM &&
                !spw_pool_backing_is_broken(space->backing, e->address, spw_pool_extent_end(e))) {
                retire_broken(space, e);
            }
        }
    }
}

void spw_pool_space_reinstate_range(struct spw_space *space, uint64_t address, uint64_t end)
{
    struct spw_extent *e = spw_pool_space_find(space, address);

    while (e != NULL && e->address < end) {
        /* A part of `e` may join the extent before it, so `e` may then begin at a lower address. */
        uint64_t next = spw_pool_extent_end(e);

        if (e->kind == SPW_EXTENT_CLAIM) {
            retire_broken(space, e);
        }
        e = next < end ? spw_pool_space_find(space, next) : NULL;
    }
}

/* ---- the heaps ---- */

static void lay_out(struct spw_heap *heap, uint64_t *base, uint64_t end)
{
    *heap = (struct spw_heap){.base = *base, .frontier = *base, .end = end};
    *base = end;
}

void spw_pool_space_init(struct spw_space *space, struct spw_stream_queues *queues,
                         struct spw_backing *backing, bool host, uint32_t numbered)
{
    /* One of eight or more parts is far more than small blocks need. */
    enum { PARTS = 8 };
    uint32_t more = (host ? 1 : 0) + numbered;
    uint64_t part = spw_pool_backing_up(backing, backing->bytes / (PARTS + more));
    uint64_t at = backing->base, end = backing->base + backing->bytes;

    memset(space, 0, sizeof(*space));
    space->queues = queues;
    space->backing = backing;
    lay_out(&space->heaps[SPW_HEAP_SMALL], &at, at + part);
    lay_out(&space->heaps[SPW_HEAP_LARGE], &at, end - more * part);
    lay_out(&space->heaps[SPW_HEAP_HOST], &at, at + (host ? part : 0));
    for (uint32_t i = 0; i < SPW_POOL_HEAPS; i++) {
        lay_out(&space->heaps[SPW_HEAP_NUMBERED + i], &at, at + (i < numbered ? part : 0));
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
                                       uint64_t bytes, const struct spw_stream_queue *queue)
{
    struct spw_extent *idle =
        spw_pool_shelf_best(&spw_pool_stream_queue_idle(space->queues)->shelves[heap], bytes);
    struct spw_extent *own =
        queue != NULL ? spw_pool_shelf_best(&queue->shelves[heap], bytes) : NULL;

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
        /* The rest keeps its position in the age list. Only its bin changes. */
        struct spw_extent *block = spw_pool_extent_take(&space->store);
        bool high = spw_pool_window_goes_high(space->backing, bytes);

        block->address = high ? spw_pool_extent_end(extent) - bytes : extent->address;
        block->bytes = bytes;
        block->heap = extent->heap;
        extent->address += high ? 0 : bytes;
        spw_pool_shelf_resize(&extent->queue->shelves[extent->heap], extent, extent->bytes - bytes);
        link_after(heap_of(space, extent), high ? extent : extent->prev, block);
        return begin_block(space, block);
    }
    unindex(space, extent);
    return begin_block(space, extent);
}

struct spw_extent *spw_pool_space_take_at(struct spw_space *space, enum spw_heap_class heap,
                                          uint64_t address, uint64_t bytes,
                                          const struct spw_stream_queue *queue)
{
    struct spw_extent *extent =
        address >= space->heaps[heap].base && address < space->heaps[heap].frontier
            ? spw_pool_space_find(space, address)
            : NULL;

    if (extent == NULL || extent->kind != SPW_EXTENT_FREE ||
        !spw_pool_window_usable(extent, SPW_WINDOW_DEVICE, queue) ||
        spw_pool_extent_end(extent) < address + bytes ||
        !spw_pool_extent_reserve(&space->store, 2)) {
        return NULL;
    }
    unindex(space, extent);
    if (extent->address < address) {
        struct spw_extent *block = cut(space, extent, address);

        index_part(space, extent);
        extent = block;
    }
    if (extent->bytes > bytes) {
        index_part(space, cut(space, extent, address + bytes));
    }
    return begin_block(space, extent);
}

void spw_pool_space_free(struct spw_space *space, struct spw_extent *block,
                         struct spw_stream_queue *queue)
{
    spw_pool_backing_note_free(space->backing, block->address, spw_pool_extent_end(block), queue);
    block->kind = SPW_EXTENT_FREE;
    block->queue = queue;
    block->seq = queue->seq;
    if (SPW_UNLIKELY(space->backing->broken > 0) &&
        spw_pool_backing_is_broken(space->backing, block->address, spw_pool_extent_end(block))) {
        retire_broken(space, block);
    } else {
        coalesce(space, block);
    }
}

void spw_pool_space_adopt(struct spw_space *space, struct spw_extent *extent,
                          struct spw_stream_queue *queue)
{
    unindex(space, extent);
    space->queues->clock++;
    /* A fence behind the wait covers the extent as well. */
    spw_pool_stream_queue_stamp(space->queues, queue);
    queue->unfenced_bytes += extent->bytes;
    extent->queue = queue;
    extent->seq = queue->seq;
    index_extent(space, extent);
}

void spw_pool_space_free_unbacked(struct spw_space *space, struct spw_extent *block)
{
    uint64_t end = spw_pool_extent_end(block);

    if (spw_pool_backing_missing(space->backing, block->address, end) <
        spw_pool_backing_granules(space->backing, block->address, end)) {
        /* A failed attempt to back the block has left chunks here. */
        block->queue = spw_pool_stream_queue_idle(space->queues);
        block->seq = block->queue->seq;
        retire_broken(space, block);
        return;
    }
    block->kind = SPW_EXTENT_HOLE;
    coalesce(space, block);
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
        tail->queue = spw_pool_stream_queue_idle(space->queues);
        tail->seq = tail->queue->seq;
        coalesce(space, tail);
    }
}

void spw_pool_space_release_completed(struct spw_space *space, struct spw_stream_queue *queue)
{
    struct spw_stream_queue *idle = spw_pool_stream_queue_idle(space->queues);

    while (queue->extents.oldest != NULL && queue->extents.oldest->seq <= queue->done) {
        struct spw_extent *extent = queue->extents.oldest;

        unindex(space, extent);
        extent->queue = idle;
        coalesce(space, extent);
    }
    spw_pool_stream_queue_collect(space->queues, queue);
}

struct spw_extent *spw_pool_space_find(const struct spw_space *space, uint64_t address)
{
    return spw_pool_heaps_find(space->heaps, space->backing, address);
}

/* ---- claims ---- */

/* Moves the frontier to `end`, and makes a hole of the addresses up to it. Returns the hole. */
static struct spw_extent *advance(struct spw_space *space, struct spw_heap *heap, uint64_t end)
{
    struct spw_extent *hole = spw_pool_extent_take(&space->store);

    hole->address = heap->frontier;
    hole->bytes = end - heap->frontier;
    hole->heap = (uint8_t)(heap - space->heaps);
    hole->kind = SPW_EXTENT_HOLE;
    link_after(heap, heap->last, hole);
    heap->frontier = end;
    coalesce(space, hole);
    return hole;
}

/* Turns [address, end), all of which must be usable, into one claim. `extent` contains its start or
 * is before it. */
static struct spw_extent *claim_range(struct spw_space *space, struct spw_extent *extent,
                                      uint64_t address, uint64_t end)
{
    struct spw_extent *claim;
    struct spw_stream_queue *queue = spw_pool_stream_queue_idle(space->queues);

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
        if (claim->kind == SPW_EXTENT_FREE && claim->queue->number != SPW_STREAM_QUEUE_IDLE) {
            queue = claim->queue;
        }
        if (spw_pool_extent_end(claim) >= end) {
            break;
        }
        extent = claim->next;
        unindex(space, extent);
        claim->bytes += extent->bytes;
        claim->kind = extent->kind;
        claim->queue = extent->kind == SPW_EXTENT_FREE ? extent->queue : queue;
        claim->seq = extent->seq;
        remove_extent(space, extent);
    }
    if (spw_pool_extent_end(claim) > end) {
        index_part(space, cut(space, claim, end));
    }
    claim->kind = SPW_EXTENT_CLAIM;
    claim->queue = queue;
    claim->seq = queue->seq;
    /* The extents that are left on both sides of the claim may no longer be partly on the host.
     * They may then match their neighbours. */
    spw_pool_space_join(space, claim->prev);
    spw_pool_space_join(space, claim->next);
    return claim;
}

/* Claims [address, end), all of which must be usable. `first` contains its start or is before it.
 * NULL: all addresses are behind the frontier. */
static enum spw_err claim_window(struct spw_space *space, struct spw_heap *heap,
                                 struct spw_extent *first, uint64_t address, uint64_t end,
                                 struct spw_extent **ret_claim)
{
    struct spw_backing *backing = space->backing;
    size_t pieces = most_pieces(space, end - address);

    if (!spw_pool_extent_reserve(&space->store, pieces + 4)) {
        return SPW_E_METADATA_NOMEM;
    }
    space->store.held = pieces;
    /* If the window ends in a hole, the whole last granule is claimed and backed. */
    if (!spw_pool_backing_has(backing, end - 1)) {
        end = spw_pool_backing_up(backing, end);
    }
    if (end > heap->frontier) {
        struct spw_extent *hole = advance(space, heap, spw_pool_backing_up(backing, end));

        if (first == NULL || hole->address <= first->address) {
            first = hole;
        }
    }
    *ret_claim = claim_range(space, first, address, end);
    return SPW_OK;
}

enum spw_err spw_pool_space_claim(struct spw_space *space, const struct spw_window_search *wanted,
                                  struct spw_extent **ret_claim)
{
    struct spw_heap *heap = &space->heaps[wanted->class];
    struct spw_window_search search = *wanted;
    struct spw_backing *backing = space->backing;
    struct spw_window window;

    search.heap = heap;
    if (spw_pool_window_is_whole(search.kind)) {
        search.bytes = spw_pool_backing_up(backing, search.bytes);
    }
    window = spw_pool_window_best(backing, &search);
    if (window.bytes == 0) {
        return SPW_E_NO_MEMORY;
    }
    /* If the window begins in a hole, the whole first granule is claimed and backed. */
    if (!spw_pool_backing_has(backing, window.address)) {
        window.address = spw_pool_backing_down(backing, window.address);
    }
    return claim_window(space, heap, window.first, window.address, window.address + window.bytes,
                        ret_claim);
}

/* Returns true if the addresses from `first` to `end` that are below the frontier are free for
 * `queue`, on the device. */
static bool is_free_for(const struct spw_extent *first, uint64_t end,
                        const struct spw_stream_queue *queue)
{
    for (const struct spw_extent *e = first; e != NULL && e->address < end; e = e->next) {
        if (!spw_pool_window_usable(e, SPW_WINDOW_DEVICE, queue)) {
            return false;
        }
    }
    return true;
}

enum spw_err spw_pool_space_claim_at(struct spw_space *space, enum spw_heap_class class,
                                     uint64_t address, uint64_t bytes,
                                     const struct spw_stream_queue *queue,
                                     struct spw_extent **ret_claim)
{
    struct spw_heap *heap = &space->heaps[class];
    struct spw_extent *first;
    uint64_t begin = address, end = address + bytes;

    if (!spw_pool_backing_has(space->backing, address)) {
        begin = spw_pool_backing_down(space->backing, address);
    }
    if (begin < heap->base || end > heap->end) {
        return SPW_E_NO_MEMORY;
    }
    first = begin < heap->frontier ? spw_pool_space_find(space, begin) : NULL;
    if (!is_free_for(first, end, queue)) {
        return SPW_E_NO_MEMORY;
    }
    return claim_window(space, heap, first, begin, end, ret_claim);
}

void spw_pool_space_unclaim(struct spw_space *space, struct spw_extent *claim)
{
    space->store.held = 0;
    rebuild(space, claim);
}

struct spw_extent *spw_pool_space_finish_claim(struct spw_space *space, struct spw_extent *claim,
                                               uint64_t address, uint64_t bytes)
{
    struct spw_extent *before = claim;

    space->store.held = 0;
    if (claim->address < address) {
        claim = cut(space, before, address);
        rebuild(space, before);
    }
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
        extent->kind = SPW_EXTENT_CLAIM; /* the pieces must not be merged with the rest yet */
        rebuild(space, extent);
    }
    return taken;
}

/* Returns true if an extent with `has` granules is a better choice than one with `best`, to take
 * `count` granules. The smallest extent with enough granules is the best. If none has enough, the
 * largest is. Few extents are then broken up. */
static bool is_better(size_t has, size_t best, size_t count)
{
    return best < count ? has > best : has >= count && has < best;
}

/* The best extent to steal from so far. */
struct victim {
    struct spw_extent *extent;
    size_t stealable;
};

/* Considers the free extents of one queue. */
static void consider_queue(const struct spw_space *space, const struct spw_stream_queue *queue,
                           enum spw_heap_class class, size_t count, struct victim *victim)
{
    const struct spw_backing *backing = space->backing;

    for (struct spw_extent *e = queue->extents.oldest; e != NULL; e = e->age.next) {
        size_t most = (size_t)(e->bytes >> backing->granule_shift), has, best = victim->stealable;

        if (e->heap != class || (most < count ? most <= best : best == count)) {
            continue; /* cannot be better, so its granules need not be counted */
        }
        has = spw_pool_backing_stealable(backing, e->address, spw_pool_extent_end(e));
        if (is_better(has, best, count)) {
            *victim = (struct victim){e, has};
        }
    }
}

/* Returns the free extent to steal from. It is chosen among idle memory, and among memory that
 * waits for some of the streams, because a part of their work may be complete. */
static struct spw_extent *best_victim(const struct spw_space *space, enum spw_heap_class class,
                                      size_t count)
{
    enum { LOOKED_AT = 256 };
    const struct spw_stream_queue *queue =
        spw_pool_stream_queue_first(space->queues, SPW_QUEUES_BUSY);
    struct victim victim = {0};

    consider_queue(space, spw_pool_stream_queue_idle(space->queues), class, count, &victim);
    for (int i = 0; i < LOOKED_AT && queue != NULL;
         i++, queue = spw_pool_stream_queue_next(space->queues, queue, SPW_QUEUES_BUSY)) {
        consider_queue(space, queue, class, count, &victim);
    }
    return victim.extent;
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

size_t spw_pool_space_steal_unkept(struct spw_space *space, size_t count)
{
    size_t taken = steal_from_heap(space, SPW_HEAP_LARGE, count);

    for (int i = 0; i < SPW_POOL_HEAPS && taken < count; i++) {
        if (space->heaps[SPW_HEAP_NUMBERED + i].first != NULL) {
            taken += steal_from_heap(space, SPW_HEAP_NUMBERED + i, count - taken);
        }
    }
    if (taken < count) {
        taken += steal_from_heap(space, SPW_HEAP_SMALL, count - taken);
    }
    return taken;
}

size_t spw_pool_space_steal(struct spw_space *space, size_t count)
{
    size_t taken = spw_pool_space_steal_unkept(space, count);

    if (taken < count && space->backing->kept != NULL) {
        space->backing->takes_kept = true;
        taken += spw_pool_space_steal_unkept(space, count - taken);
        space->backing->takes_kept = false;
    }
    return taken;
}

/* Evicts every free chunk of the host in a heap. */
static void evict_heap(struct spw_space *space, struct spw_heap *heap)
{
    struct spw_extent *e = heap->last;

    while (e != NULL) {
        uint64_t address = e->address;

        if (e->kind == SPW_EXTENT_FREE && (e->host || e->heap == SPW_HEAP_HOST)) {
            (void)steal_from(space, SPW_TIER_HOST, e, SIZE_MAX);
        }
        /* The rest may have merged with the extent below. That extent is examined next. */
        if (e->address == address) {
            e = e->prev;
        }
    }
}

void spw_pool_space_evict_free_host(struct spw_space *space)
{
    for (int i = 0; i < SPW_HEAP_COUNT && space->host_extents > 0; i++) {
        if (i != SPW_HEAP_HOST) {
            evict_heap(space, &space->heaps[i]);
        }
    }
}

void spw_pool_space_evict_host_heap(struct spw_space *space)
{
    evict_heap(space, &space->heaps[SPW_HEAP_HOST]);
}
