#include "pool/memory/stock.h"

#include "common/grow.h"

#include <stdlib.h>

/* Spare chunks are merged if they are at least this many orders below the wanted order. Mapping
 * four or more of them would cost more than replacing them. */
enum { MERGED_ORDERS = 2 };

enum { JOIN_SHARE = 128 }; /* while memory spills, a chunk is at most 1/JOIN_SHARE of the limit */

/* Updates the peak of reserved memory, which programs can query. Spare chunks of the host are not
 * included. */
void spw_pool_stock_note_reserved(struct spw_counters *counters)
{
    uint64_t reserved =
        spw_counter_get(&counters->committed_bytes) + spw_counter_get(&counters->host_used_bytes);

    if (reserved > spw_counter_get(&counters->reserved_peak_bytes)) {
        spw_counter_set(&counters->reserved_peak_bytes, reserved);
    }
}

/* Counts granules of chunks that are created or released. */
static void count_chunks(struct spw_stock *stock, enum spw_tier tier, int64_t change)
{
    struct spw_counters *counters = stock->counters;
    int64_t bytes = change * (int64_t)stock->granule_bytes;

    stock->tiers[tier].total += (size_t)change;
    if (tier == SPW_TIER_HOST) {
        if (stock->host_chunks != NULL) {
            atomic_fetch_add(stock->host_chunks, (uint64_t)change);
        }
        spw_counter_shift(&counters->host_bytes, bytes);
        spw_counter_peak(&counters->host_peak_bytes, &counters->host_bytes);
        return;
    }
    spw_counter_shift(&counters->committed_bytes, bytes);
    spw_counter_peak(&counters->committed_peak_bytes, &counters->committed_bytes);
    spw_pool_stock_note_reserved(counters);
}

void spw_pool_stock_put(struct spw_stock *stock, enum spw_tier tier, unsigned order, uint64_t chunk)
{
    struct spw_stock_tier *store = &stock->tiers[tier];
    struct spw_spare_chunks *spare = &store->orders[order];

    spare->chunks[spare->count++] = chunk;
    store->spare += spw_pool_stock_size(order);
}

uint64_t spw_pool_stock_take(struct spw_stock *stock, enum spw_tier tier, unsigned order)
{
    struct spw_stock_tier *store = &stock->tiers[tier];
    struct spw_spare_chunks *spare = &store->orders[order];

    store->spare -= spw_pool_stock_size(order);
    return spare->chunks[--spare->count];
}

/* Reserves room for the records of `more` chunks, so that unmapping never allocates. Returns false
 * if the process has no memory. */
static bool reserve_records(struct spw_spare_chunks *spare, size_t more)
{
    return SPW_GROW(&spare->chunks, &spare->capacity, spare->existing + more);
}

/* Makes a new chunk spare. There must be room for its record. */
static void add(struct spw_stock *stock, enum spw_tier tier, unsigned order, uint64_t chunk)
{
    stock->tiers[tier].orders[order].existing++;
    spw_pool_stock_put(stock, tier, order, chunk);
    count_chunks(stock, tier, (int64_t)spw_pool_stock_size(order));
}

uint64_t spw_pool_stock_limit(const struct spw_stock *stock, enum spw_tier tier)
{
    uint64_t limit = stock->limits[tier], used, room;

    if (!stock->bounded || tier != SPW_TIER_DEVICE) {
        return limit;
    }
    used = spw_counter_get(&stock->counters->committed_bytes);
    room = stock->vm->ops->room(stock->vm);
    return room < limit && used + room < limit ? used + room : limit;
}

size_t spw_pool_stock_room(const struct spw_stock *stock, enum spw_tier tier)
{
    const struct spw_counters *counters = stock->counters;
    uint64_t limit = spw_pool_stock_limit(stock, tier);
    uint64_t used =
        spw_counter_get(tier == SPW_TIER_HOST ? &counters->host_bytes : &counters->committed_bytes);

    return used < limit ? (size_t)((limit - used) / stock->granule_bytes) : 0;
}

unsigned spw_pool_stock_join_order(const struct spw_stock *stock)
{
    uint64_t limit = stock->limits[SPW_TIER_DEVICE] / stock->granule_bytes / JOIN_SHARE;
    unsigned order = limit > 0 ? spw_pool_stock_order((size_t)limit) : 0;

    return order < stock->largest_order ? order : stock->largest_order;
}

void spw_pool_stock_note_wall(struct spw_counters *counters)
{
    spw_counter_set(&counters->host_wall_bytes, spw_counter_get(&counters->host_bytes) +
                                                    spw_counter_get(&counters->pinned_bytes));
    spw_counter_add(&counters->host_refusals, 1);
}

/* Creates a chunk. A chunk of the host is tried twice, because one refusal may have passed. Only
 * the refusal of a single granule shows where the wall is. */
static enum spw_err create(struct spw_stock *stock, enum spw_tier tier, uint64_t bytes,
                           uint64_t *ret_chunk)
{
    enum spw_err err = stock->vm->ops->create(stock->vm, tier, bytes, ret_chunk);

    if (err == SPW_E_NO_MEMORY && tier == SPW_TIER_HOST) {
        err = stock->vm->ops->create(stock->vm, tier, bytes, ret_chunk);
        if (err == SPW_E_NO_MEMORY && bytes == stock->granule_bytes) {
            spw_pool_stock_note_wall(stock->counters);
        }
    }
    return err;
}

enum spw_err spw_pool_stock_create(struct spw_stock *stock, enum spw_tier tier, unsigned order)
{
    struct spw_spare_chunks *spare = &stock->tiers[tier].orders[order];
    size_t granules = spw_pool_stock_size(order);
    uint64_t chunk;
    enum spw_err err;

    if (!reserve_records(spare, 1)) {
        return SPW_E_METADATA_NOMEM;
    }
    err = create(stock, tier, granules * stock->granule_bytes, &chunk);
    if (err == SPW_OK) {
        add(stock, tier, order, chunk + 1);
    }
    return err;
}

/* Releases a spare chunk of an order. Returns false if the backend refuses. */
static bool release_spare(struct spw_stock *stock, enum spw_tier tier, unsigned order)
{
    struct spw_spare_chunks *spare = &stock->tiers[tier].orders[order];

    if (!spw_pool_alias_drop(&stock->aliases, spare->chunks[spare->count - 1], order) ||
        stock->vm->ops->release(stock->vm, spare->chunks[spare->count - 1] - 1) != SPW_OK) {
        return false;
    }
    (void)spw_pool_stock_take(stock, tier, order);
    spare->existing--;
    count_chunks(stock, tier, -(int64_t)spw_pool_stock_size(order));
    return true;
}

/* Returns the smallest order above `order` that has a spare chunk; SPW_CHUNK_ORDERS if there is
 * none. */
static unsigned next_larger(const struct spw_stock_tier *store, unsigned order)
{
    do {
        order++;
    } while (order < SPW_CHUNK_ORDERS && store->orders[order].count == 0);
    return order;
}

/* Replaces a spare chunk of order `from` by smaller chunks, including two of order `to`. */
static enum spw_err split(struct spw_stock *stock, enum spw_tier tier, unsigned from, unsigned to)
{
    enum spw_err err = SPW_OK;

    if (!release_spare(stock, tier, from)) {
        return SPW_E_NO_MEMORY;
    }
    err = spw_pool_stock_create(stock, tier, to);
    for (unsigned order = to; order < from && err == SPW_OK; order++) {
        err = spw_pool_stock_create(stock, tier, order);
    }
    return err;
}

/* Finds the largest order that has a spare chunk of at most `most` granules. If all spare chunks
 * are larger, splits one of them. */
static enum spw_err find_largest(struct spw_stock *stock, enum spw_tier tier, size_t most,
                                 unsigned *ret_order)
{
    const struct spw_stock_tier *store = &stock->tiers[tier];
    unsigned largest = spw_pool_stock_order(most), order = largest;

    while (order > 0 && store->orders[order].count == 0) {
        order--;
    }
    *ret_order = order;
    if (store->orders[order].count > 0) {
        return SPW_OK;
    }
    order = next_larger(store, largest);
    *ret_order = largest;
    return order < SPW_CHUNK_ORDERS ? split(stock, tier, order, largest) : SPW_E_NO_MEMORY;
}

/* Replaces smaller spare chunks by one chunk of `order`. */
static enum spw_err merge(struct spw_stock *stock, enum spw_tier tier, unsigned order)
{
    struct spw_stock_tier *store = &stock->tiers[tier];
    size_t size = spw_pool_stock_size(order), most = size, smaller = 0;

    for (unsigned i = 0; i < order; i++) {
        smaller += store->orders[i].count << i;
    }
    if (smaller < size || !reserve_records(&store->orders[order], 1)) {
        return SPW_E_NO_MEMORY;
    }
    /* If the chunks are taken in descending order of size, their sizes add up to exactly `size`. */
    for (unsigned i = order; i-- > 0;) {
        while (store->orders[i].count > 0 && most > 0) {
            if (!release_spare(stock, tier, i)) {
                return SPW_E_NO_MEMORY;
            }
            most -= spw_pool_stock_size(i);
        }
    }
    return spw_pool_stock_create(stock, tier, order);
}

enum spw_err spw_pool_stock_find(struct spw_stock *stock, enum spw_tier tier, size_t most,
                                 unsigned *ret_order)
{
    unsigned order = spw_pool_stock_order(most);
    enum spw_err err;

    order = order < stock->merge_order ? order : stock->merge_order;
    err = find_largest(stock, tier, most, ret_order);
    if (err == SPW_OK && *ret_order + MERGED_ORDERS <= order &&
        merge(stock, tier, order) == SPW_OK) {
        *ret_order = order;
    }
    return err == SPW_OK && stock->tiers[tier].orders[*ret_order].count == 0
               ? find_largest(stock, tier, most, ret_order)
               : err;
}

size_t spw_pool_stock_release(struct spw_stock *stock, enum spw_tier tier, size_t most)
{
    const struct spw_stock_tier *store = &stock->tiers[tier];
    size_t released = 0;
    unsigned order;

    while (released < most && store->spare > 0 &&
           find_largest(stock, tier, most - released, &order) == SPW_OK &&
           release_spare(stock, tier, order)) {
        released += spw_pool_stock_size(order);
    }
    return released;
}

/* Makes a spare chunk of an order that has none. */
static enum spw_err make_spare(struct spw_stock *stock, enum spw_tier tier, unsigned order,
                               size_t may_add)
{
    unsigned larger = next_larger(&stock->tiers[tier], order);
    enum spw_err err = SPW_E_NO_MEMORY;

    if (larger < SPW_CHUNK_ORDERS) {
        err = split(stock, tier, larger, order);
    } else if (spw_pool_stock_size(order) <= may_add) {
        err = spw_pool_stock_create(stock, tier, order);
    }
    return err == SPW_E_NO_MEMORY ? merge(stock, tier, order) : err;
}

enum spw_err spw_pool_stock_hold(struct spw_stock *stock, enum spw_tier tier, unsigned order,
                                 size_t may_add, uint64_t *ret_chunk, uint64_t *ret_alias)
{
    struct spw_spare_chunks *spare = &stock->tiers[tier].orders[order];
    enum spw_err err = spare->count > 0 ? SPW_OK : make_spare(stock, tier, order, may_add);

    if (err == SPW_OK) {
        err =
            spw_pool_alias_get(&stock->aliases, spare->chunks[spare->count - 1], order, ret_alias);
    }
    if (err == SPW_OK) {
        stock->tiers[tier].held += spw_pool_stock_size(order);
        *ret_chunk = spw_pool_stock_take(stock, tier, order);
    }
    return err;
}

enum spw_err spw_pool_stock_hold_exportable(struct spw_stock *stock, unsigned order,
                                            uint64_t *ret_chunk, uint64_t *ret_alias)
{
    struct spw_spare_chunks *spare = &stock->tiers[SPW_TIER_DEVICE].orders[order];
    size_t size = spw_pool_stock_size(order);
    uint64_t chunk;
    enum spw_err err;

    if (!reserve_records(spare, 1)) {
        return SPW_E_METADATA_NOMEM;
    }
    err = stock->vm->ops->create_exportable(stock->vm, size * stock->granule_bytes, &chunk);
    if (err != SPW_OK) {
        return err;
    }
    add(stock, SPW_TIER_DEVICE, order, chunk + 1);
    err = spw_pool_alias_get(&stock->aliases, chunk + 1, order, ret_alias);
    if (err != SPW_OK) {
        /* If the backend refuses, the chunk serves like any other chunk, because no other process
         * has a handle of it. */
        (void)release_spare(stock, SPW_TIER_DEVICE, order);
        return err;
    }
    *ret_chunk = spw_pool_stock_take(stock, SPW_TIER_DEVICE, order);
    spare->existing--;
    stock->tiers[SPW_TIER_DEVICE].held += size;
    return SPW_OK;
}

void spw_pool_stock_discard(struct spw_stock *stock, unsigned order, uint64_t chunk)
{
    size_t size = spw_pool_stock_size(order);

    if (spw_pool_alias_drop(&stock->aliases, chunk, order) &&
        stock->vm->ops->release(stock->vm, chunk - 1) == SPW_OK) {
        count_chunks(stock, SPW_TIER_DEVICE, -(int64_t)size);
    } else {
        stock->tiers[SPW_TIER_DEVICE].held += size;
    }
}

void spw_pool_stock_unhold(struct spw_stock *stock, enum spw_tier tier, unsigned order,
                           uint64_t chunk)
{
    stock->tiers[tier].held -= spw_pool_stock_size(order);
    spw_pool_stock_put(stock, tier, order, chunk);
}

void spw_pool_stock_fini(struct spw_stock *stock, enum spw_tier tier)
{
    /* The release of some chunks may have failed, so they are still counted. */
    count_chunks(stock, tier, -(int64_t)stock->tiers[tier].total);
    for (int order = 0; order < SPW_CHUNK_ORDERS; order++) {
        free(stock->tiers[tier].orders[order].chunks);
    }
}
