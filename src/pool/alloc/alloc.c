/* Allocation: takes a free extent that fits. If there is none, creates memory, takes memory from
 * other addresses, or waits for memory. */
#include "common/host_share.h"
#include "common/likely.h"
#include "pool/alloc/chunks.h"
#include "pool/alloc/lazy.h"
#include "pool/alloc/placement.h"
#include "pool/alloc/state.h"
#include "pool/alloc/usage.h"
#include "pool/space/pending.h"

enum { SMALL_MOST_BYTES = 4096 }; /* larger blocks are in the heap of large blocks */

/* One request, while the pool serves it. */
struct attempt {
    const struct spw_request *request;
    uint64_t bytes;                 /* size, rounded up */
    struct spw_stream_queue *queue; /* queue of the stream; NULL: no stream */
    enum spw_heap_class heap;
    bool lazy;            /* gets its memory later */
    bool uncounted;       /* does not count as live until it has memory */
    size_t host_granules; /* granules of the block that its placement puts on the host */
    struct spw_chunk_need need;
};

/* ---- finding a block ---- */

static size_t missing_of(const struct spw_backing *backing, const struct spw_extent *claim)
{
    return spw_pool_backing_missing(backing, claim->address, spw_pool_extent_end(claim));
}

/* Backs a claim, with `host` of its granules on the host. Turns `bytes` of it at `address` into a
 * block. After a failure, the claim is given back. */
static enum spw_err back_claim(struct spw_space *space, struct spw_extent *claim, uint64_t address,
                               uint64_t bytes, size_t host, struct spw_extent **ret_block)
{
    enum spw_err err;

    space->backing->stock.merge_order = spw_pool_backing_uses_host(space->backing)
                                            ? spw_pool_stock_join_order(&space->backing->stock)
                                            : 0;
    err = spw_pool_backing_fill(space->backing, claim->address, spw_pool_extent_end(claim), host);

    if (err != SPW_OK) {
        spw_pool_space_unclaim(space, claim);
        return err;
    }
    *ret_block = spw_pool_space_finish_claim(space, claim, address, bytes);
    return SPW_OK;
}

static struct spw_extent *try_hit(struct spw_space *space, const struct attempt *attempt)
{
    struct spw_extent *extent;

    if (attempt->lazy || (attempt->host_granules > 0 && attempt->heap != SPW_HEAP_HOST)) {
        return NULL; /* no free extent has the requested backing */
    }
    if (attempt->queue == NULL) {
        /* For cuMemAlloc, memory that cuMemFree has freed is the best choice, so the fences of
         * cuMemFree are polled every time. This costs an event and a query, while cuMemAlloc on a
         * bare driver takes hundreds of microseconds. */
        spw_pool_poll_queue(space, spw_pool_stream_queue_all(space->queues), true);
    }
    extent = spw_pool_space_best(space, attempt->heap, attempt->bytes, attempt->queue);
    return extent != NULL ? spw_pool_space_take(space, extent, attempt->bytes) : NULL;
}

/* Makes the stream of the request wait for all frees of another queue. */
static bool wait_for_queue(struct spw_space *space, const struct attempt *attempt,
                           struct spw_stream_queue *queue)
{
    struct spw_vm *vm = space->backing->vm;

    if (spw_pool_stream_queue_fence(space->queues, queue) != SPW_OK || queue->count == 0 ||
        vm->ops->wait_stream(vm, attempt->request->stream, spw_pool_stream_queue_newest(queue)) !=
            SPW_OK) {
        return false;
    }
    spw_counter_add(&space->backing->counters->stream_waits, 1);
    return true;
}

/* Takes memory that has pending work on another stream, and makes the stream of the request wait
 * for that work. */
static struct spw_extent *try_other_queues(struct spw_space *space, const struct attempt *attempt)
{
    enum { LOOKED_AT = 64 };
    struct spw_extent *best = NULL;
    const struct spw_stream_queue *queue =
        spw_pool_stream_queue_first(space->queues, SPW_QUEUES_BUSY);

    for (int i = 0; i < LOOKED_AT && queue != NULL && attempt->queue != NULL;
         i++, queue = spw_pool_stream_queue_next(space->queues, queue, SPW_QUEUES_BUSY)) {
        struct spw_extent *extent;

        if (queue == attempt->queue) {
            continue;
        }
        extent = spw_pool_shelf_best(&queue->shelves[attempt->heap], attempt->bytes);
        if (extent != NULL && (best == NULL || extent->bytes < best->bytes)) {
            best = extent;
        }
    }
    return best != NULL && wait_for_queue(space, attempt, best->queue)
               ? spw_pool_space_take(space, best, attempt->bytes)
               : NULL;
}

/* Returns the number of granules to back ahead, behind the block. */
static size_t ahead_of(const struct spw_space *space, const struct attempt *attempt)
{
    size_t spare = spw_pool_backing_spare(space->backing);
    size_t own = (size_t)(attempt->bytes / space->backing->granule_bytes) + 2;

    if (attempt->heap != SPW_HEAP_LARGE || spare <= own) {
        return 0;
    }
    return spare - own < space->ahead ? spare - own : space->ahead;
}

static struct spw_window_search search_of(const struct attempt *attempt, enum spw_window_kind kind)
{
    return (struct spw_window_search){
        .class = attempt->heap, .bytes = attempt->bytes, .queue = attempt->queue, .kind = kind};
}

/* Claims addresses for the block. Claims more granules behind it, if there is room. */
static enum spw_err claim_ahead(struct spw_space *space, const struct attempt *attempt,
                                struct spw_extent **ret_claim)
{
    struct spw_window_search search =
        search_of(attempt, attempt->request->may_spill ? SPW_WINDOW_ANY : SPW_WINDOW_DEVICE);
    uint64_t more = ahead_of(space, attempt) * space->backing->granule_bytes;
    enum spw_err err;

    search.bytes += more;
    err = spw_pool_space_claim(space, &search, ret_claim);
    search.bytes -= more;
    return err == SPW_E_NO_MEMORY && more > 0 ? spw_pool_space_claim(space, &search, ret_claim)
                                              : err;
}

/* Backs new addresses for the block with spare chunks, or with chunks created within the allowance.
 * With `reclaiming`, also steals, and grows up to the limit. SPW_E_AGAIN: another way must be
 * tried. */
static enum spw_err back_new(struct spw_pool *pool, struct attempt *attempt, bool reclaiming,
                             struct spw_extent **ret_block)
{
    struct spw_extent *claim;
    size_t missing;
    enum spw_err err = claim_ahead(&pool->space, attempt, &claim);

    if (err != SPW_OK) {
        return err == SPW_E_NO_MEMORY && spw_pool_has_pending(&pool->queues) ? SPW_E_AGAIN : err;
    }
    missing = missing_of(&pool->backing, claim);
    if (reclaiming) {
        err = spw_pool_chunks_reclaim_or_grow(pool, &attempt->need, missing);
        if (attempt->request->may_spill && spw_pool_chunks_exhausted(&attempt->need, err) &&
            spw_pool_chunks_supplement(pool, missing)) {
            err = SPW_OK;
        }
    } else {
        err = spw_pool_chunks_grow(pool, &attempt->need, missing);
        if (err == SPW_OK && spw_pool_backing_spare(&pool->backing) < missing) {
            err = SPW_E_AGAIN;
        }
    }
    if (err != SPW_OK) {
        spw_pool_space_unclaim(&pool->space, claim);
        return err;
    }
    return back_claim(&pool->space, claim, claim->address, attempt->bytes, /* host */ 0, ret_block);
}

/* Makes a lazy block from unbacked addresses. */
static enum spw_err take_addresses(struct spw_pool *pool, const struct attempt *attempt,
                                   struct spw_extent **ret_block)
{
    struct spw_window_search search = search_of(attempt, SPW_WINDOW_FRESH);
    struct spw_extent *claim;
    enum spw_err err = spw_pool_space_claim(&pool->space, &search, &claim);

    if (err == SPW_OK) {
        *ret_block = spw_pool_lazy_begin(pool, claim);
    }
    return err;
}

/* Makes sure that `host` granules of a claim have no backing. They include the last granule, which
 * the block may use only in part. Returns false if this is not possible. */
static bool make_holes(struct spw_backing *backing, const struct spw_extent *claim, size_t host)
{
    uint64_t end = spw_pool_extent_end(claim);

    return spw_pool_backing_make_holes(backing, claim->address, end, host) >= host &&
           !spw_pool_backing_has(backing, end - 1);
}

/* Claims whole granules for a block that is partly on the host. The memory of a freed block of the
 * same kind is best, because its granules on the host have already lost their backing. */
static enum spw_err claim_partly(struct spw_space *space, const struct attempt *attempt,
                                 struct spw_extent **ret_claim)
{
    struct spw_window_search search = search_of(attempt, SPW_WINDOW_WHOLE);
    enum spw_err err;

    search.wanted = attempt->host_granules;
    err = spw_pool_space_claim(space, &search, ret_claim);
    if (err != SPW_OK || make_holes(space->backing, *ret_claim, attempt->host_granules)) {
        return err;
    }
    spw_pool_space_unclaim(space, *ret_claim);
    search = search_of(attempt, SPW_WINDOW_FRESH);
    return spw_pool_space_claim(space, &search, ret_claim);
}

/* Backs addresses for a block that is placed on the host, completely or in part. */
static enum spw_err back_as_placed(struct spw_pool *pool, struct attempt *attempt,
                                   struct spw_extent **ret_block)
{
    bool all = attempt->heap == SPW_HEAP_HOST;
    struct spw_window_search search = search_of(attempt, SPW_WINDOW_DEVICE);
    struct spw_extent *claim;
    size_t missing, host;
    enum spw_err err = all ? spw_pool_space_claim(&pool->space, &search, &claim)
                           : claim_partly(&pool->space, attempt, &claim);

    if (err != SPW_OK) {
        return err == SPW_E_NO_MEMORY && spw_pool_has_pending(&pool->queues) ? SPW_E_AGAIN : err;
    }
    missing = missing_of(&pool->backing, claim);
    host = all ? missing : attempt->host_granules;
    err = spw_pool_chunks_grow(pool, &attempt->need, missing - host);
    if (err == SPW_OK) {
        err = spw_pool_chunks_reclaim_or_grow(pool, &attempt->need, missing - host);
    }
    if (err == SPW_OK) {
        err = spw_pool_chunks_get_host(pool, host);
    }
    if (err != SPW_OK) {
        spw_pool_space_unclaim(&pool->space, claim);
        return err;
    }
    return back_claim(&pool->space, claim, claim->address, attempt->bytes, host, ret_block);
}

/* Serves a request that no backed extent fits. The order is: poll fences and look again, grow
 * within the allowance, take memory of another stream in stream order, steal, grow up to the
 * limit. */
static enum spw_err miss(struct spw_pool *pool, struct attempt *attempt,
                         struct spw_extent **ret_block)
{
    enum spw_err err;

    spw_pool_poll_some_queues(&pool->space, attempt->queue);
    if ((pool->space.host_extents > 0 || attempt->host_granules > 0) && attempt->queue != NULL) {
        spw_pool_poll_queue(&pool->space, attempt->queue, true);
    }
    spw_pool_space_evict_free_host(&pool->space);
    *ret_block = try_hit(&pool->space, attempt);
    if (*ret_block != NULL) {
        return SPW_OK;
    }
    spw_counter_add(&pool->figures.counters->misses, 1);
    if (attempt->lazy) {
        return take_addresses(pool, attempt, ret_block);
    }
    if (attempt->host_granules > 0) {
        return back_as_placed(pool, attempt, ret_block);
    }
    err = back_new(pool, attempt, /* reclaiming */ false, ret_block);
    if (err != SPW_E_AGAIN) {
        return err;
    }
    *ret_block = try_other_queues(&pool->space, attempt);
    if (*ret_block != NULL) {
        return SPW_OK;
    }
    return back_new(pool, attempt, /* reclaiming */ true, ret_block);
}

/* ---- planned addresses ---- */

/* Returns the first free extent at planned addresses that waits for another stream; NULL if there
 * is none. */
static struct spw_extent *first_of_other_queue(const struct spw_space *space,
                                               const struct attempt *attempt, uint64_t address)
{
    struct spw_extent *e = spw_pool_space_find(space, address);

    while (e != NULL && e->address < address + attempt->bytes) {
        if (e->kind == SPW_EXTENT_FREE && e->queue != attempt->queue &&
            e->queue->number != SPW_STREAM_QUEUE_IDLE) {
            return e;
        }
        e = e->next;
    }
    return NULL;
}

/* Makes free memory at planned addresses usable, even if it waits for work of other streams. That
 * work may already be complete. Otherwise the stream of the request is made to wait for it. */
static void order_behind_others(struct spw_space *space, const struct attempt *attempt,
                                uint64_t address)
{
    const struct spw_stream_queue *polled = NULL, *waited = NULL;
    struct spw_extent *e;

    while ((e = first_of_other_queue(space, attempt, address)) != NULL) {
        if (e->queue == waited) {
            spw_pool_space_adopt(space, e, attempt->queue);
        } else if (e->queue != polled) {
            polled = e->queue;
            spw_pool_poll_queue(space, e->queue, true);
        } else if (attempt->queue != NULL && wait_for_queue(space, attempt, e->queue)) {
            waited = e->queue;
        } else {
            return;
        }
    }
}

/* Gets chunks for a claim at planned addresses. Takes them first from free memory that no plan
 * needs. */
static enum spw_err provide_planned(struct spw_pool *pool, struct attempt *attempt, size_t missing)
{
    size_t spare = spw_pool_backing_spare(&pool->backing);
    enum spw_err err;

    if (spare < missing) {
        (void)spw_pool_space_steal_unkept(&pool->space, missing - spare);
    }
    err = spw_pool_chunks_grow(pool, &attempt->need, missing);
    return err == SPW_OK ? spw_pool_chunks_reclaim_or_grow(pool, &attempt->need, missing) : err;
}

/* Backs the planned addresses, which must be free. */
static enum spw_err back_planned(struct spw_pool *pool, struct attempt *attempt, uint64_t address,
                                 struct spw_extent **ret_block)
{
    struct spw_extent *claim;
    size_t missing;
    enum spw_err err = spw_pool_space_claim_at(&pool->space, attempt->heap, address, attempt->bytes,
                                               attempt->queue, &claim);

    if (err != SPW_OK) {
        return err;
    }
    missing = missing_of(&pool->backing, claim);
    err = provide_planned(pool, attempt, missing);
    if (err != SPW_OK) {
        spw_pool_space_unclaim(&pool->space, claim);
        return err;
    }
    return back_claim(&pool->space, claim, address, attempt->bytes, /* host */ 0, ret_block);
}

/* Allocates the block at its planned address. Returns NULL if the block has no planned address, or
 * if that address cannot be used. */
static struct spw_extent *try_planned(struct spw_pool *pool, struct attempt *attempt)
{
    struct spw_extent *block = NULL;
    uint64_t address;

    if (attempt->heap != SPW_HEAP_LARGE || attempt->lazy || attempt->host_granules > 0 ||
        !spw_pool_layout_next(&pool->layout, attempt->bytes, &address) ||
        !spw_pool_address_map_reserve(&pool->blocks)) {
        return NULL;
    }
    block = spw_pool_space_take_at(&pool->space, attempt->heap, address, attempt->bytes,
                                   attempt->queue);
    if (block == NULL) {
        order_behind_others(&pool->space, attempt, address);
        block = spw_pool_space_take_at(&pool->space, attempt->heap, address, attempt->bytes,
                                       attempt->queue);
    }
    if (block == NULL && back_planned(pool, attempt, address, &block) != SPW_OK) {
        block = NULL;
    }
    spw_counter_add(block != NULL ? &pool->figures.counters->planned_allocs
                                  : &pool->figures.counters->unplanned_allocs,
                    1);
    attempt->need = (struct spw_chunk_need){.bytes = attempt->need.bytes,
                                            .any_stream = attempt->need.any_stream};
    return block;
}

/* Looks for existing memory. Returns AGAIN if there is none. Also reserves room in the address map,
 * because other threads may have used the last reserved entry during a wait. */
static enum spw_err look(struct spw_pool *pool, const struct attempt *attempt,
                         struct spw_extent **ret_block)
{
    if (pool->shut) {
        return SPW_E_UNSUPPORTED;
    }
    if (!spw_pool_address_map_reserve(&pool->blocks)) {
        return SPW_E_METADATA_NOMEM;
    }
    *ret_block = try_hit(&pool->space, attempt);
    return *ret_block != NULL ? SPW_OK : SPW_E_AGAIN;
}

/* Gets memory, and waits for it without the lock if necessary. */
static enum spw_err find_slowly(struct spw_pool *pool, struct attempt *attempt,
                                struct spw_extent **ret_block)
{
    enum spw_err err;

    do {
        attempt->need.device_full = false;
        err = miss(pool, attempt, ret_block);
        if (err != SPW_E_AGAIN) {
            return err;
        }
        if (attempt->need.wait_refused) {
            return attempt->need.device_full ? SPW_E_NO_MEMORY : SPW_E_LIMIT;
        }
        /* With a host tier the wait is short: there is another source of memory, and the work may
         * itself wait for the program's next step. */
        attempt->need.wait_refused =
            spw_pool_wait_for_fence(&pool->space, &pool->lock,
                                    pool->backing.stock.limits[SPW_TIER_HOST] > 0 ||
                                        pool->host_untried) != SPW_OK;
        err = look(pool, attempt, ret_block);
    } while (err == SPW_E_AGAIN);
    return err;
}

/* Finds memory for the block or creates it, and reserves room in the address map. */
static enum spw_err find_block(struct spw_pool *pool, struct attempt *attempt,
                               struct spw_extent **ret_block)
{
    enum spw_err err = look(pool, attempt, ret_block);

    if (err != SPW_E_AGAIN) {
        return err;
    }
    if (attempt->queue != NULL) {
        attempt->queue->users++; /* the queue must still belong to this stream after a wait */
    }
    err = find_slowly(pool, attempt, ret_block);
    if (attempt->queue != NULL) {
        attempt->queue->users--;
        spw_pool_stream_queue_collect(&pool->queues, attempt->queue);
    }
    return err;
}

/* ---- allocating ---- */

/* Refuses a block that the limits do not allow, before chunks are created for it. */
static enum spw_err admit(const struct spw_pool *pool, const struct attempt *attempt)
{
    uint64_t live = attempt->lazy ? 0 : spw_counter_get(&pool->figures.counters->live_bytes);
    uint64_t host = attempt->request->may_spill || attempt->host_granules > 0
                        ? pool->backing.stock.limits[SPW_TIER_HOST]
                        : spw_counter_get(&pool->figures.counters->host_used_bytes);

    if (live + attempt->bytes > pool->backing.stock.limits[SPW_TIER_DEVICE] + host) {
        return SPW_E_LIMIT;
    }
    return attempt->request->placement == NULL ||
                   spw_pool_placement_allows(&pool->figures, attempt->request->placement,
                                             attempt->bytes)
               ? SPW_OK
               : SPW_E_QUOTA;
}

/* Checks the placement's limit again, because another thread may have used it up while this thread
 * waited for memory. A lazy block does not wait. */
static bool is_still_allowed(const struct spw_figures *figures, const struct attempt *attempt)
{
    return attempt->lazy ||
           spw_pool_placement_allows(figures, attempt->request->placement, attempt->bytes);
}

/* Frees the memory of a block that was never returned. Earlier work of the stream may still use
 * this memory. */
static void give_back(struct spw_pool *pool, const struct attempt *attempt,
                      struct spw_extent *block)
{
    struct spw_stream_queue *queue = attempt->queue;

    if (queue == NULL) {
        queue = spw_pool_stream_queue_idle(&pool->queues);
    } else {
        pool->queues.clock++;
        spw_pool_stream_queue_stamp(&pool->queues, queue);
    }
    if (block->heap == SPW_HEAP_SLAB) {
        spw_pool_slabs_free(&pool->slabs, block, queue);
    } else {
        spw_pool_space_free(&pool->space, block, queue);
    }
}

/* Tries a planned address, and then find_block. If the block may be on the host, and the host tier
 * consists of page-locked memory, tries page-locked memory last. */
static enum spw_err find_anywhere(struct spw_pool *pool, struct attempt *attempt,
                                  struct spw_extent **ret_block)
{
    enum spw_err err;

    if (SPW_UNLIKELY(pool->layout.records != NULL)) {
        *ret_block = pool->shut ? NULL : try_planned(pool, attempt);
        if (*ret_block != NULL) {
            return SPW_OK;
        }
    }
    err = find_block(pool, attempt, ret_block);
    if (err != SPW_OK && pool->slabs.open && spw_pool_chunks_exhausted(&attempt->need, err) &&
        (attempt->request->may_spill || attempt->heap == SPW_HEAP_HOST) &&
        spw_pool_address_map_reserve(&pool->blocks) &&
        spw_pool_slabs_alloc(&pool->slabs, attempt->bytes, attempt->queue,
                             attempt->request->context, ret_block) == SPW_OK) {
        return SPW_OK;
    }
    return err;
}

/* Sets the members of a new block, and counts it. */
static void begin_block(struct spw_pool *pool, const struct attempt *attempt,
                        struct spw_extent *block)
{
    struct spw_figures *figures = &pool->figures;

    block->requested = attempt->request->bytes;
    block->used = pool->queues.clock;
    block->id = ++pool->next_id;
    block->stream_id = attempt->request->stream != NULL ? attempt->request->stream->id : 0;
    block->context = attempt->request->context;
    block->ordered = attempt->request->stream != NULL;
    block->site = attempt->request->site;
    block->priority = 0;
    block->fixed = 0;
    block->account = 0;
    block->lazy = attempt->lazy;
    block->uncounted = attempt->uncounted;
    block->placed = 0;
    if (attempt->request->placement != NULL) {
        spw_pool_placement_begin(pool, block, attempt->request->placement);
    }
    spw_pool_address_map_put(&pool->blocks, block);
    spw_counter_shift(&figures->counters->allocs, 1);
    if (SPW_UNLIKELY(attempt->uncounted)) {
        figures->uncounted_bytes += attempt->bytes;
        return;
    }
    if (SPW_UNLIKELY(pool->layout.records != NULL) && block->heap == SPW_HEAP_LARGE) {
        spw_pool_layout_record(&pool->layout, block);
    }
    figures->own_live_bytes += attempt->bytes;
    figures->lazy_bytes += attempt->lazy ? attempt->bytes : 0;
    spw_pool_count_live(pool, (int64_t)attempt->bytes, block->ordered, block->site);
}

static uint64_t host_bytes_of(const struct spw_backing *backing, const struct spw_extent *block)
{
    return block->heap == SPW_HEAP_SLAB
               ? block->bytes
               : spw_pool_backing_host_bytes(backing, block->address, spw_pool_extent_end(block));
}

static enum spw_err alloc_locked(struct spw_pool *pool, struct attempt *attempt,
                                 struct spw_result *ret_result)
{
    struct spw_extent *block;
    enum spw_err err;

    if (SPW_UNLIKELY(pool->exported.ending)) {
        spw_pool_exported_release(&pool->exported);
    }
    err = admit(pool, attempt);

    if (err != SPW_OK) {
        return err;
    }
    if (attempt->request->stream != NULL) {
        attempt->queue = spw_pool_stream_queue_of(&pool->queues, attempt->request->stream);
        if (attempt->queue == NULL) {
            return SPW_E_METADATA_NOMEM;
        }
    }
    attempt->need.any_stream = attempt->queue == NULL;
    err = find_anywhere(pool, attempt, &block);
    if (SPW_UNLIKELY(attempt->request->placement != NULL) && err == SPW_OK &&
        !is_still_allowed(&pool->figures, attempt)) {
        give_back(pool, attempt, block);
        err = SPW_E_QUOTA;
    }
    if (err != SPW_OK) {
        return err;
    }
    begin_block(pool, attempt, block);
    *ret_result =
        (struct spw_result){.address = block->address,
                            .host_bytes = attempt->request->may_spill || attempt->host_granules > 0
                                              ? host_bytes_of(&pool->backing, block)
                                              : 0,
                            .uncounted = attempt->uncounted};
    return SPW_OK;
}

/* Chooses the heap, and the granules on the host, for a placement. The host's share of a block is
 * rounded to whole granules. A block in the host's own heap may share its granules with other
 * blocks. */
static void choose_heap(const struct spw_space *space, struct attempt *attempt)
{
    const struct spw_pool_placement *placement = attempt->request->placement;
    uint64_t granule = space->backing->granule_bytes;
    uint64_t all = (attempt->bytes + granule - 1) / granule;
    uint64_t share = spw_host_share_granules(attempt->bytes, placement->host_permille, granule);
    unsigned numbered = SPW_HEAP_NUMBERED + placement->heap - 1u;

    if (placement->heap > 0 && spw_pool_space_has(space, numbered)) {
        attempt->heap = numbered;
    }
    if (attempt->request->may_spill) {
        return; /* every tier is allowed */
    }
    attempt->host_granules = (size_t)(placement->on_host ? all : share);
    /* A block that is completely on the host is never lazy, because spw_pool_commit looks for
     * blocks of the device. */
    attempt->lazy = placement->lazy && attempt->host_granules < all && attempt->bytes >= granule &&
                    space->backing->to_commit != NULL;
    attempt->uncounted = placement->uncounted && attempt->lazy;
    if (attempt->host_granules == all && spw_pool_space_has(space, SPW_HEAP_HOST)) {
        attempt->heap = SPW_HEAP_HOST;
    } else if (attempt->host_granules > 0 && attempt->heap == SPW_HEAP_SMALL) {
        attempt->heap = SPW_HEAP_LARGE;
    }
}

enum spw_err spw_pool_alloc(struct spw_pool *pool, const struct spw_request *request,
                            struct spw_result *ret_result)
{
    struct attempt attempt = {.request = request};
    enum spw_err err;

    if (request->bytes == 0) {
        return SPW_E_INVAL;
    }
    if (request->bytes > pool->backing.bytes) {
        return SPW_E_LIMIT;
    }
    attempt.bytes = (request->bytes + SPW_UNIT_BYTES - 1) / SPW_UNIT_BYTES * SPW_UNIT_BYTES;
    attempt.need.bytes = attempt.bytes;
    attempt.heap = attempt.bytes <= SMALL_MOST_BYTES ? SPW_HEAP_SMALL : SPW_HEAP_LARGE;
    if (SPW_UNLIKELY(request->placement != NULL)) {
        choose_heap(&pool->space, &attempt);
    }
    spw_lock(&pool->lock);
    err = alloc_locked(pool, &attempt, ret_result);
    spw_unlock(&pool->lock);
    return err;
}
