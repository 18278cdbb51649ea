#include "pool/alloc/chunks.h"

#include "pool/alloc/state.h"
#include "pool/memory/stock.h"
#include "pool/space/pending.h"

#include <limits.h>

enum {
    PRESSURE_FREES = 256,       /* number of frees after a steal that get an early fence */
    GROWTH_FLOOR_GRANULES = 16, /* the smallest growth allowance, unless it is 0 */
    GROWTH_FIRST_SHARE = 5,     /* 1/GROWTH_FIRST_SHARE of the growth allowance may be used at
                                   once */
    GROWTH_STEAL_SHARE = 2,     /* in addition, 1/GROWTH_STEAL_SHARE of the stolen bytes may be
                                   used */
    SIZE_SHARE = 512,           /* a chunk is at most 1/SIZE_SHARE of the pool, and of the room that
                                   is left */
};

/* Returns the largest order of a chunk to create in a tier. `count` granules are needed, and `room`
 * granules (not 0) may be created. */
static unsigned order_for(const struct spw_stock *stock, enum spw_tier tier, size_t count,
                          size_t room)
{
    size_t least =
        room < stock->tiers[tier].total + count ? room : stock->tiers[tier].total + count;
    size_t most = least / SIZE_SHARE;
    unsigned order = spw_pool_stock_order(most < count ? most + (most == 0) : count);

    return order < stock->largest_order ? order : stock->largest_order;
}

/* Returns the number of granules that may be created with at most `most_bytes` committed. */
static size_t room_for(const struct spw_stock *stock, uint64_t most_bytes)
{
    uint64_t committed = spw_counter_get(&stock->counters->committed_bytes);

    return committed < most_bytes ? (size_t)((most_bytes - committed) / stock->granule_bytes) : 0;
}

/* Creates chunks until `count` granules are spare, with at most `most_bytes` committed. After an
 * error, the chunks that were created stay. */
static enum spw_err grow(struct spw_stock *stock, struct spw_chunk_need *need, size_t count,
                         uint64_t most_bytes)
{
    const struct spw_stock_tier *device = &stock->tiers[SPW_TIER_DEVICE];
    unsigned largest = SPW_CHUNK_ORDERS;
    size_t left = device->spare < count ? spw_pool_stock_room(stock, SPW_TIER_DEVICE) : 0;

    if (stock->bounded && device->spare < count) {
        /* The others need what this request cannot use. */
        need->device_full = left < count - device->spare;
    }
    while (device->spare < count && !need->device_full) {
        size_t wanted = count - device->spare;
        size_t most = room_for(stock, most_bytes);
        enum spw_err err;
        unsigned order;

        most = most < left ? most : left;
        if (most == 0) {
            break;
        }
        order = order_for(stock, SPW_TIER_DEVICE, wanted < most ? wanted : most, left);
        order = order < largest ? order : largest;
        err = spw_pool_stock_create(stock, SPW_TIER_DEVICE, order);
        if (err == SPW_E_NO_MEMORY) {
            need->device_full = order == 0;
            largest = order == 0 ? 0 : order - 1;
        } else if (err != SPW_OK) {
            return err;
        } else {
            left -= spw_pool_stock_size(order);
        }
    }
    return SPW_OK;
}

/* Returns how many bytes of free memory may stay backed beyond a peak. A program that rarely steals
 * keeps little free memory. A program that steals repeatedly gets room for all its sizes. */
static uint64_t growth_allowance(const struct spw_stock *stock, uint64_t peak)
{
    uint64_t floor = GROWTH_FLOOR_GRANULES * stock->granule_bytes;
    uint64_t stolen = spw_counter_get(&stock->counters->steals) * stock->granule_bytes;
    uint64_t most = peak / 1000 * stock->growth_permille;
    uint64_t now = most / GROWTH_FIRST_SHARE;

    if (stock->growth_permille == 0) {
        return 0;
    }
    now = (now > floor ? now : floor) + stolen / GROWTH_STEAL_SHARE;
    most = most > floor ? most : floor;
    return now < most ? now : most;
}

/* Returns how many bytes may be committed before free memory at other addresses is stolen. */
static uint64_t growth_bound(const struct spw_pool *pool, const struct spw_chunk_need *need)
{
    uint64_t peak = spw_counter_get(&pool->figures.counters->live_peak_bytes);
    uint64_t live = spw_counter_get(&pool->figures.counters->live_bytes) + need->bytes;

    if (live > peak) {
        peak = live;
    }
    peak -= pool->figures.placed_bytes < peak ? pool->figures.placed_bytes : 0;
    return peak + growth_allowance(&pool->backing.stock, peak);
}

enum spw_err spw_pool_chunks_grow(struct spw_pool *pool, struct spw_chunk_need *need, size_t count)
{
    return grow(&pool->backing.stock, need, count, growth_bound(pool, need));
}

static void steal(struct spw_pool *pool, size_t count)
{
    size_t spare = spw_pool_backing_spare(&pool->backing), taken;

    if (spare >= count) {
        return;
    }
    spw_pool_poll_queues(&pool->space, NULL, false);
    taken = spw_pool_space_steal(&pool->space, count - spare);
    if (taken < count - spare) {
        spw_pool_poll_queues(&pool->space, NULL, true);
        taken += spw_pool_space_steal(&pool->space, count - spare - taken);
    }
    if (taken > 0) {
        spw_counter_add(&pool->figures.counters->steals, taken);
        spw_counter_add(&pool->figures.counters->steal_batches, 1);
    }
    pool->queues.pressure = PRESSURE_FREES;
    spw_pool_layout_want(&pool->layout);
}

enum spw_err spw_pool_chunks_reclaim_or_grow(struct spw_pool *pool, struct spw_chunk_need *need,
                                             size_t count)
{
    enum spw_err err;

    steal(pool, count);
    if (spw_pool_backing_spare(&pool->backing) >= count) {
        return SPW_OK;
    }
    /* On a bare driver, cuMemFree may have waited for the device, so waiting here is no worse.
     * Because of the wait, a loop of cuMemAlloc and cuMemFree does not use more and more memory.
     * There is no wait if fences complete only by a wait for the whole device: work of the device
     * may itself wait for this thread. */
    if (need->any_stream && !need->wait_refused &&
        spw_pool_stream_queue_all(&pool->queues)->count > 0 &&
        !pool->backing.vm->ops->defers(pool->backing.vm)) {
        return SPW_E_AGAIN;
    }
    err = grow(&pool->backing.stock, need, count, UINT64_MAX);
    if (err != SPW_OK || spw_pool_backing_spare(&pool->backing) >= count) {
        return err;
    }
    if (spw_pool_has_pending(&pool->queues)) {
        return SPW_E_AGAIN;
    }
    return need->device_full ? SPW_E_NO_MEMORY : SPW_E_LIMIT;
}

bool spw_pool_chunks_exhausted(const struct spw_chunk_need *need, enum spw_err err)
{
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY ||
           (err == SPW_E_AGAIN && need->wait_refused);
}

/* Creates chunks on the host, within its limit, until `count` granules are spare. */
static bool create_host(struct spw_pool *pool, size_t count)
{
    struct spw_stock *stock = &pool->backing.stock;
    const struct spw_stock_tier *host = &stock->tiers[SPW_TIER_HOST];
    uint64_t charged = spw_counter_get(&stock->counters->vmm_host_bytes);
    uint64_t limit = stock->limits[SPW_TIER_HOST];
    size_t most = charged < limit ? (size_t)((limit - charged) / stock->granule_bytes) : 0;
    unsigned largest = UINT_MAX;
    enum spw_err err = SPW_OK;

    if (pool->slabs.open) {
        most = 0; /* the device cannot map chunks of the host */
    }
    while (host->spare < count && host->total < most && err == SPW_OK) {
        size_t wanted = count - host->spare, left = most - host->total;
        unsigned order = order_for(stock, SPW_TIER_HOST, wanted < left ? wanted : left, left);

        order = order < largest ? order : largest;
        err = spw_pool_stock_create(stock, SPW_TIER_HOST, order);
        if (err == SPW_E_NO_MEMORY && order > 0) {
            largest = order - 1; /* smaller chunks may fit */
            err = SPW_OK;
        }
    }
    return host->spare >= count;
}

bool spw_pool_chunks_supplement(struct spw_pool *pool, size_t count)
{
    size_t spare = spw_pool_backing_spare(&pool->backing);

    return create_host(pool, count > spare ? count - spare : 0);
}

enum spw_err spw_pool_chunks_get_host(struct spw_pool *pool, size_t count)
{
    const struct spw_stock_tier *host = &pool->backing.stock.tiers[SPW_TIER_HOST];

    if (!create_host(pool, count)) {
        spw_pool_poll_queues(&pool->space, NULL, true);
        spw_pool_space_evict_free_host(&pool->space);
        spw_pool_space_evict_host_heap(&pool->space);
    }
    return host->spare >= count                  ? SPW_OK
           : spw_pool_has_pending(&pool->queues) ? SPW_E_AGAIN
                                                 : SPW_E_NO_MEMORY;
}

enum spw_err spw_pool_chunks_provide(struct spw_pool *pool, size_t count, bool spilling)
{
    struct spw_chunk_need need = {.any_stream = true};
    enum spw_err err;

    do {
        need.device_full = false;
        spw_pool_poll_queues(&pool->space, NULL, true);
        spw_pool_space_evict_free_host(&pool->space);
        err = spw_pool_chunks_grow(pool, &need, count);
        if (err == SPW_OK) {
            err = spw_pool_chunks_reclaim_or_grow(pool, &need, count);
        }
        if (spilling && spw_pool_chunks_exhausted(&need, err) &&
            spw_pool_chunks_supplement(pool, count)) {
            err = SPW_OK;
        }
        if (err != SPW_E_AGAIN || need.wait_refused) {
            break;
        }
        need.wait_refused =
            spw_pool_wait_for_fence(&pool->space, &pool->lock,
                                    pool->backing.stock.limits[SPW_TIER_HOST] > 0) != SPW_OK;
    } while (true);
    return err == SPW_E_AGAIN ? SPW_E_LIMIT : err;
}
