/* Allocation: from a block that lies ready to memory that is made, taken from elsewhere, or waited
 * for. */
#include "pool/state.h"

enum {
    SMALL_MOST_BYTES = 4096,    /* larger blocks live in the heap of large ones */
    PRESSURE_FREES = 256,       /* frees watched after a steal */
    GROWTH_FLOOR_GRANULES = 16, /* of any growth allowance above zero */
};

/* What one allocation asks for, and what was learnt on the way. */
struct request {
    uint64_t requested;
    uint64_t bytes; /* rounded up */
    const struct spw_stream *stream;
    struct spw_stream_queue *lane; /* of the stream; NULL without one */
    void *context;
    enum spw_heap_class heap;
    uint32_t site;
    const struct spw_pool_placement *wish; /* NULL: none */
    bool spilling;                         /* may be on the host */
    bool lazy;                             /* gets its memory later */
    bool device_full;                      /* the driver refused to create more */
    bool wait_refused;                     /* the host may not wait now */
    size_t host_granules; /* of the block that are to be on the host, by its wish */
    uint64_t host_bytes;  /* of the block that was had */
};

/* ---- getting chunks ---- */

static bool may_create(const struct spw_pool *pool, uint64_t most_bytes)
{
    uint64_t committed = spw_counter_get(&pool->counters->committed_bytes);

    return committed + pool->config.granule_bytes <= most_bytes &&
           committed + pool->config.granule_bytes <= pool->config.limit_bytes;
}

/* Creates spare chunks until there are `count`, as long as no more than `most_bytes` are committed.
 * Whatever the outcome, what was created stays. */
static enum spw_err grow(struct spw_pool *pool, struct request *request, size_t count,
                         uint64_t most_bytes)
{
    while (spw_pool_backing_spare(&pool->backing) < count && !request->device_full &&
           may_create(pool, most_bytes)) {
        enum spw_err err = spw_pool_backing_create(&pool->backing, SPW_TIER_DEVICE);

        if (err == SPW_E_NO_MEMORY) {
            request->device_full = true;
        } else if (err != SPW_OK) {
            return err;
        }
    }
    return SPW_OK;
}

/* How much may be committed before free memory is taken from elsewhere. */
static uint64_t growth_bound(const struct spw_pool *pool, const struct request *request)
{
    uint64_t peak = spw_counter_get(&pool->counters->live_peak_bytes);
    uint64_t live = spw_counter_get(&pool->counters->live_bytes) + request->bytes;
    uint64_t allowance, floor = GROWTH_FLOOR_GRANULES * pool->config.granule_bytes;

    if (live > peak) {
        peak = live;
    }
    peak -= pool->placed_bytes < peak ? pool->placed_bytes : 0;
    allowance = peak / 1000 * pool->config.growth_permille;
    if (pool->config.growth_permille > 0 && allowance < floor) {
        allowance = floor;
    }
    return peak + allowance;
}

static void steal(struct spw_pool *pool, size_t count)
{
    size_t spare = spw_pool_backing_spare(&pool->backing), taken;

    if (spare >= count) {
        return;
    }
    spw_pool_settle(pool, NULL, false);
    taken = spw_pool_space_steal(&pool->space, count - spare);
    if (taken < count - spare) {
        spw_pool_settle(pool, NULL, true);
        taken += spw_pool_space_steal(&pool->space, count - spare - taken);
    }
    if (taken > 0) {
        spw_counter_add(&pool->counters->steals, taken);
        spw_counter_add(&pool->counters->steal_batches, 1);
    }
    pool->pressure = PRESSURE_FREES;
}

static bool anything_pending(const struct spw_pool *pool)
{
    for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < pool->lanes.count; i++) {
        if (pool->lanes.by_number[i]->count > 0) {
            return true;
        }
    }
    return pool->lanes.waiters > 0;
}

/* Gets `count` spare chunks beyond the allowance: by stealing, then by growing up to the limit.
 * SPW_E_AGAIN when waiting for the device may help. */
static enum spw_err scrape(struct spw_pool *pool, struct request *request, size_t count)
{
    enum spw_err err;

    steal(pool, count);
    if (spw_pool_backing_spare(&pool->backing) >= count) {
        return SPW_OK;
    }
    /* cuMemFree may have waited for the device on a bare driver, so waiting for it here is no
     * worse, and keeps the memory of a loop of cuMemAlloc and cuMemFree from growing. */
    if (request->lane == NULL && !request->wait_refused &&
        spw_pool_stream_queue_all(&pool->lanes)->count > 0) {
        return SPW_E_AGAIN;
    }
    err = grow(pool, request, count, UINT64_MAX);
    if (err != SPW_OK || spw_pool_backing_spare(&pool->backing) >= count) {
        return err;
    }
    if (anything_pending(pool)) {
        return SPW_E_AGAIN;
    }
    return request->device_full ? SPW_E_NO_MEMORY : SPW_E_LIMIT;
}

/* Whether the device has no memory, with nothing left to wait for. */
static bool is_short(const struct request *request, enum spw_err err)
{
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY ||
           (err == SPW_E_AGAIN && request->wait_refused);
}

/* Creates chunks on the host, within its limit, until `count` are spare. */
static bool create_host(struct spw_pool *pool, size_t count)
{
    const struct spw_chunk_store *host = &pool->backing.tiers[SPW_TIER_HOST];
    uint64_t charged = spw_counter_get(&pool->counters->vmm_host_bytes);
    uint64_t limit = pool->config.host_limit_bytes;
    size_t most = charged < limit ? (size_t)((limit - charged) / pool->config.granule_bytes) : 0;

    if (pool->slabs.table != NULL) {
        return false; /* for the host has no chunks */
    }
    while (host->spare_count < count && host->chunk_count < most &&
           spw_pool_backing_create(&pool->backing, SPW_TIER_HOST) == SPW_OK) {
    }
    return host->spare_count >= count;
}

/* Gets chunks on the host for what `count` granules lack on the device. */
static bool add_host(struct spw_pool *pool, size_t count)
{
    size_t spare = spw_pool_backing_spare(&pool->backing);

    return create_host(pool, count > spare ? count - spare : 0);
}

/* Gets `count` spare chunks of the host. */
static enum spw_err get_host(struct spw_pool *pool, size_t count)
{
    const struct spw_chunk_store *host = &pool->backing.tiers[SPW_TIER_HOST];

    if (host->spare_count < count && !create_host(pool, count)) {
        spw_pool_settle(pool, NULL, true);
        spw_pool_space_shed(&pool->space);
        spw_pool_space_shed_host(&pool->space);
    }
    return host->spare_count >= count ? SPW_OK
           : anything_pending(pool)   ? SPW_E_AGAIN
                                      : SPW_E_NO_MEMORY;
}

/* Backs a claim, `host` of its granules on the host, and makes it a block. On failure the claim is
 * given back. */
static enum spw_err back_claim(struct spw_pool *pool, struct spw_extent *claim, uint64_t bytes,
                               size_t host, struct spw_extent **ret_block)
{
    enum spw_err err =
        spw_pool_backing_fill(&pool->backing, claim->address, spw_pool_extent_end(claim), host);

    if (err != SPW_OK) {
        spw_pool_space_unclaim(&pool->space, claim);
        return err;
    }
    *ret_block = spw_pool_space_settle_claim(&pool->space, claim, bytes);
    return SPW_OK;
}

/* ---- finding a block ---- */

static struct spw_extent *try_hit(struct spw_pool *pool, const struct request *request)
{
    struct spw_extent *extent;

    if (request->lazy || (request->host_granules > 0 && request->heap != SPW_HEAP_HOST)) {
        return NULL; /* no memory lies there as it should */
    }
    if (request->lane == NULL) {
        /* What cuMemFree gave back is the first choice of cuMemAlloc, so look every time: an event
         * and a query, against the hundreds of microseconds of the calls they stand in for. */
        spw_pool_settle_lane(pool, spw_pool_stream_queue_all(&pool->lanes), true);
    }
    extent = spw_pool_space_best(&pool->space, request->heap, request->bytes, request->lane);
    return extent != NULL ? spw_pool_space_take(&pool->space, extent, request->bytes) : NULL;
}

/* Takes memory whose work on another stream is pending, by making the request's stream wait. */
static struct spw_extent *try_other_lanes(struct spw_pool *pool, const struct request *request)
{
    struct spw_extent *best = NULL;
    struct spw_stream_queue *lane;

    for (uint32_t i = SPW_STREAM_QUEUE_ALL; i < pool->lanes.count && request->lane != NULL; i++) {
        struct spw_extent *extent;

        lane = pool->lanes.by_number[i];
        if (lane == request->lane) {
            continue;
        }
        extent = spw_pool_bins_best(&lane->bins[request->heap], request->bytes);
        if (extent != NULL && (best == NULL || extent->bytes < best->bytes)) {
            best = extent;
        }
    }
    if (best == NULL) {
        return NULL;
    }
    lane = best->lane;
    if (spw_pool_stream_queue_fence(&pool->lanes, lane) != SPW_OK || lane->count == 0 ||
        pool->ops->wait_stream(pool->vm, request->stream, spw_pool_stream_queue_newest(lane)) !=
            SPW_OK) {
        return NULL;
    }
    spw_counter_add(&pool->counters->stream_waits, 1);
    return spw_pool_space_take(&pool->space, best, request->bytes);
}

/* How many granules more than the block needs are to be backed with it. */
static size_t ahead_of(const struct spw_pool *pool, const struct request *request)
{
    size_t spare = spw_pool_backing_spare(&pool->backing);
    size_t own = (size_t)(request->bytes / pool->config.granule_bytes) + 2;

    if (request->heap != SPW_HEAP_LARGE || spare <= own) {
        return 0;
    }
    return spare - own < pool->ahead ? spare - own : pool->ahead;
}

/* Claims addresses for the block, and more behind it if there are. */
static enum spw_err claim_ahead(struct spw_pool *pool, const struct request *request,
                                struct spw_extent **ret_claim)
{
    enum spw_window_kind kind = request->spilling ? SPW_WINDOW_ANY : SPW_WINDOW_DEVICE;
    uint64_t more = ahead_of(pool, request) * pool->config.granule_bytes;
    enum spw_err err = spw_pool_space_claim(&pool->space, request->heap, request->bytes + more,
                                            request->lane, kind, ret_claim);

    return err == SPW_E_NO_MEMORY && more > 0
               ? spw_pool_space_claim(&pool->space, request->heap, request->bytes, request->lane,
                                      kind, ret_claim)
               : err;
}

/* Backs new addresses for the block, with chunks that are spare, created within the allowance, or,
 * if it must be, scraped together. SPW_E_AGAIN when there is another way. */
static enum spw_err back_new(struct spw_pool *pool, struct request *request, bool scraping,
                             struct spw_extent **ret_block)
{
    struct spw_extent *claim;
    size_t missing;
    enum spw_err err = claim_ahead(pool, request, &claim);

    if (err != SPW_OK) {
        return err == SPW_E_NO_MEMORY && anything_pending(pool) ? SPW_E_AGAIN : err;
    }
    missing = spw_pool_backing_missing(&pool->backing, claim->address, spw_pool_extent_end(claim));
    if (scraping) {
        err = scrape(pool, request, missing);
        if (request->spilling && is_short(request, err) && add_host(pool, missing)) {
            err = SPW_OK;
        }
    } else {
        err = grow(pool, request, missing, growth_bound(pool, request));
        if (err == SPW_OK && spw_pool_backing_spare(&pool->backing) < missing) {
            err = SPW_E_AGAIN;
        }
    }
    if (err != SPW_OK) {
        spw_pool_space_unclaim(&pool->space, claim);
        return err;
    }
    return back_claim(pool, claim, request->bytes, /* host */ 0, ret_block);
}

/* Makes a block of new addresses that are not backed. */
static enum spw_err take_addresses(struct spw_pool *pool, const struct request *request,
                                   struct spw_extent **ret_block)
{
    struct spw_extent *claim;
    enum spw_err err = spw_pool_space_claim(&pool->space, request->heap, request->bytes,
                                            request->lane, SPW_WINDOW_FRESH, &claim);

    if (err == SPW_OK) {
        *ret_block = spw_pool_lazy_begin(pool, claim);
    }
    return err;
}

/* Backs new addresses for a block that a rule wishes to be on the host, all of it, or in part. */
static enum spw_err back_as_wished(struct spw_pool *pool, struct request *request,
                                   struct spw_extent **ret_block)
{
    bool all = request->heap == SPW_HEAP_HOST;
    struct spw_extent *claim;
    size_t missing, host;
    enum spw_err err =
        spw_pool_space_claim(&pool->space, request->heap, request->bytes, request->lane,
                             all ? SPW_WINDOW_DEVICE : SPW_WINDOW_FRESH, &claim);

    if (err != SPW_OK) {
        return err == SPW_E_NO_MEMORY && anything_pending(pool) ? SPW_E_AGAIN : err;
    }
    missing = spw_pool_backing_missing(&pool->backing, claim->address, spw_pool_extent_end(claim));
    host = all ? missing : request->host_granules;
    err = grow(pool, request, missing - host, growth_bound(pool, request));
    if (err == SPW_OK && spw_pool_backing_spare(&pool->backing) < missing - host) {
        err = scrape(pool, request, missing - host);
    }
    if (err == SPW_OK) {
        err = get_host(pool, host);
    }
    if (err != SPW_OK) {
        spw_pool_space_unclaim(&pool->space, claim);
        return err;
    }
    /* A host's heap spreads over what it has already. */
    host =
        all ? spw_pool_backing_granules(&pool->backing, claim->address, spw_pool_extent_end(claim))
            : host;
    return back_claim(pool, claim, request->bytes, host, ret_block);
}

/* No backed extent fits: finds out what has completed, grows within the allowance, waits in stream
 * order for another stream's memory, steals, grows up to the limit; in this order. */
static enum spw_err miss(struct spw_pool *pool, struct request *request,
                         struct spw_extent **ret_block)
{
    enum spw_err err;

    spw_pool_settle(pool, request->lane, true);
    if (pool->space.host_extents > 0 && request->lane != NULL) {
        spw_pool_settle_lane(pool, request->lane, true);
    }
    spw_pool_space_shed(&pool->space);
    *ret_block = try_hit(pool, request);
    if (*ret_block != NULL) {
        return SPW_OK;
    }
    spw_counter_add(&pool->counters->misses, 1);
    if (request->lazy) {
        return take_addresses(pool, request, ret_block);
    }
    if (request->host_granules > 0) {
        return back_as_wished(pool, request, ret_block);
    }
    err = back_new(pool, request, /* scraping */ false, ret_block);
    if (err != SPW_E_AGAIN) {
        return err;
    }
    *ret_block = try_other_lanes(pool, request);
    if (*ret_block != NULL) {
        return SPW_OK;
    }
    return back_new(pool, request, /* scraping */ true, ret_block);
}

/* Finds or makes the block, with room for it in the address map. */
static enum spw_err find_block(struct spw_pool *pool, struct request *request,
                               struct spw_extent **ret_block)
{
    for (;;) {
        enum spw_err err;

        /* Every time, since other threads may have used the room during a wait. */
        if (!spw_pool_address_map_reserve(&pool->blocks)) {
            return SPW_E_METADATA_NOMEM;
        }
        *ret_block = try_hit(pool, request);
        if (*ret_block != NULL) {
            return SPW_OK;
        }
        request->device_full = false;
        err = miss(pool, request, ret_block);
        if (err != SPW_E_AGAIN) {
            return err;
        }
        if (request->wait_refused) {
            return request->device_full ? SPW_E_NO_MEMORY : SPW_E_LIMIT;
        }
        request->wait_refused = spw_pool_wait_for_one(pool) != SPW_OK;
    }
}

/* ---- allocating ---- */

/* Whether the limits rule the block out, whatever is freed: then no chunk is created for it. */
static enum spw_err admit(const struct spw_pool *pool, const struct request *request)
{
    uint64_t live = request->lazy ? 0 : spw_counter_get(&pool->counters->live_bytes);
    uint64_t host = request->spilling || request->host_granules > 0
                        ? pool->config.host_limit_bytes
                        : spw_counter_get(&pool->counters->host_used_bytes);

    if (live + request->bytes > pool->config.limit_bytes + host) {
        return SPW_E_LIMIT;
    }
    return request->wish == NULL || spw_pool_placement_allows(pool, request->wish, request->bytes)
               ? SPW_OK
               : SPW_E_QUOTA;
}

/* The same in page-locked memory, where that is what the host has and the block may be there. */
static enum spw_err find_anywhere(struct spw_pool *pool, struct request *request,
                                  struct spw_extent **ret_block)
{
    enum spw_err err = find_block(pool, request, ret_block);

    if (err != SPW_OK && pool->slabs.table != NULL && is_short(request, err) &&
        (request->spilling || request->heap == SPW_HEAP_HOST) &&
        spw_pool_slabs_alloc(pool, request->bytes, request->lane, ret_block) == SPW_OK) {
        return SPW_OK;
    }
    return err;
}

/* Enters a block in the books. */
static void begin_block(struct spw_pool *pool, const struct request *request,
                        struct spw_extent *block)
{
    block->requested = request->requested;
    block->used = pool->lanes.clock;
    block->id = ++pool->next_id;
    block->stream_id = request->stream != NULL ? request->stream->id : 0;
    block->context = request->context;
    block->ordered = request->stream != NULL;
    block->site = request->site;
    block->priority = 0;
    block->fixed = 0;
    block->rule = 0;
    block->lazy = request->lazy;
    block->placed = 0;
    if (request->wish != NULL) {
        spw_pool_placement_begin(pool, block, request->wish);
    }
    spw_pool_address_map_put(&pool->blocks, block);
    pool->own_live_bytes += request->bytes;
    pool->lazy_bytes += request->lazy ? request->bytes : 0;
    spw_pool_count_live(pool, (int64_t)request->bytes, block->ordered, block->site);
    spw_counter_shift(&pool->counters->allocs, 1);
}

static uint64_t host_bytes_of(const struct spw_pool *pool, const struct spw_extent *block)
{
    return block->heap == SPW_HEAP_SLAB
               ? block->bytes
               : spw_pool_backing_host_bytes(&pool->backing, block->address,
                                             spw_pool_extent_end(block));
}

static enum spw_err alloc_locked(struct spw_pool *pool, struct request *request,
                                 uint64_t *ret_address)
{
    struct spw_extent *block;
    enum spw_err err = admit(pool, request);

    if (err != SPW_OK) {
        return err;
    }
    if (request->stream != NULL) {
        request->lane = spw_pool_stream_queue_of(&pool->lanes, request->stream);
        if (request->lane == NULL) {
            return SPW_E_METADATA_NOMEM;
        }
    }
    err = find_anywhere(pool, request, &block);
    if (err != SPW_OK) {
        return err;
    }
    begin_block(pool, request, block);
    if (request->spilling) {
        request->host_bytes = host_bytes_of(pool, block);
    }
    *ret_address = block->address;
    return SPW_OK;
}

/* Where a rule wishes the block to be. The share of a block is rounded to whole granules; what is
 * whole on the host needs no granules of its own. */
static void choose_heap(const struct spw_pool *pool, struct request *request)
{
    const struct spw_pool_placement *wish = request->wish;
    uint64_t granule = pool->config.granule_bytes;
    uint64_t all = (request->bytes + granule - 1) / granule;
    uint64_t share = (request->bytes * wish->host_permille / 1000 + granule / 2) / granule;

    if (wish->region > 0 && wish->region <= pool->config.regions) {
        request->heap = SPW_HEAP_REGION + wish->region - 1;
    }
    if (request->spilling) {
        return; /* it is enough to have it anywhere */
    }
    request->lazy = wish->lazy && request->bytes >= granule && pool->config.lazies != NULL;
    request->host_granules = (size_t)(wish->on_host ? all : share < all ? share : all);
    if (request->host_granules == all && pool->config.host_heap) {
        request->heap = SPW_HEAP_HOST;
    } else if (request->host_granules > 0 && request->heap == SPW_HEAP_SMALL) {
        request->heap = SPW_HEAP_LARGE;
    }
}

static enum spw_err alloc(struct spw_pool *pool, struct request *request, uint64_t *ret_address)
{
    enum spw_err err;

    if (request->requested == 0) {
        return SPW_E_INVAL;
    }
    if (request->requested > pool->config.arena_bytes) {
        return SPW_E_LIMIT;
    }
    request->bytes = (request->requested + SPW_UNIT_BYTES - 1) / SPW_UNIT_BYTES * SPW_UNIT_BYTES;
    request->heap = request->bytes <= SMALL_MOST_BYTES ? SPW_HEAP_SMALL : SPW_HEAP_LARGE;
    if (request->wish != NULL) {
        choose_heap(pool, request);
    }
    pthread_mutex_lock(&pool->lock);
    err = alloc_locked(pool, request, ret_address);
    pthread_mutex_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_alloc_for(struct spw_pool *pool, uint64_t bytes,
                                const struct spw_stream *stream, void *context, uint32_t site,
                                uint64_t *ret_address)
{
    struct request request = {
        .requested = bytes, .stream = stream, .context = context, .site = site};

    return alloc(pool, &request, ret_address);
}

enum spw_err spw_pool_alloc_wish(struct spw_pool *pool, uint64_t bytes,
                                 const struct spw_stream *stream, void *context, uint32_t site,
                                 const struct spw_pool_placement *wish, bool anywhere,
                                 uint64_t *ret_address, uint64_t *ret_host_bytes)
{
    struct request request = {.requested = bytes,
                              .stream = stream,
                              .context = context,
                              .site = site,
                              .wish = wish,
                              .spilling = anywhere};
    enum spw_err err = alloc(pool, &request, ret_address);

    *ret_host_bytes = request.host_bytes;
    return err;
}

enum spw_err spw_pool_provide(struct spw_pool *pool, size_t count, bool spilling)
{
    struct request request = {.spilling = spilling};
    enum spw_err err;

    do {
        request.device_full = false;
        spw_pool_settle(pool, NULL, true);
        spw_pool_space_shed(&pool->space);
        err = grow(pool, &request, count, growth_bound(pool, &request));
        if (err == SPW_OK && spw_pool_backing_spare(&pool->backing) < count) {
            err = scrape(pool, &request, count);
        }
        if (spilling && is_short(&request, err) && add_host(pool, count)) {
            err = SPW_OK;
        }
        if (err != SPW_E_AGAIN || request.wait_refused) {
            break;
        }
        request.wait_refused = spw_pool_wait_for_one(pool) != SPW_OK;
    } while (true);
    return err == SPW_E_AGAIN ? SPW_E_LIMIT : err;
}
