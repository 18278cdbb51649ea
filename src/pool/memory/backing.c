#include "pool/memory/backing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/host_share.h"

/* The table covers the whole arena. Most of its pages are never accessed, and use no memory. */
static size_t table_bytes(const struct spw_backing *backing)
{
    return (size_t)(backing->bytes >> backing->granule_shift) * sizeof(struct spw_granule);
}

static uint64_t reserved_bytes(const struct spw_backing *backing)
{
    return backing->bytes + backing->alias_bytes;
}

enum spw_err spw_pool_backing_init(struct spw_backing *backing,
                                   const struct spw_backing_config *config)
{
    enum spw_err err;
    void *table;

    *backing = (struct spw_backing){.vm = config->vm,
                                    .queues = config->queues,
                                    .counters = config->counters,
                                    .stock = {.vm = config->vm,
                                              .granule_bytes = config->granule_bytes,
                                              .counters = config->counters,
                                              .host_chunks = config->host_chunks},
                                    .bytes = config->arena_bytes,
                                    .alias_bytes = config->alias_bytes,
                                    .granule_bytes = config->granule_bytes};
    backing->granule_shift = (unsigned)__builtin_ctzll(config->granule_bytes);
    table = mmap(NULL, table_bytes(backing), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) {
        return SPW_E_METADATA_NOMEM;
    }
    err = config->vm->ops->reserve(config->vm, reserved_bytes(backing), &backing->base);
    if (err != SPW_OK) {
        munmap(table, table_bytes(backing));
        return err;
    }
    backing->granules = table;
    backing->stock.aliases =
        (struct spw_aliases){.vm = config->vm,
                             .granule_bytes = config->granule_bytes,
                             .next = backing->base + config->arena_bytes,
                             .end = backing->base + config->arena_bytes + config->alias_bytes};
    return SPW_OK;
}

/* Counts granules of the host that become mapped or unmapped. */
static void count_use(struct spw_backing *backing, enum spw_tier tier, int64_t change)
{
    if (tier == SPW_TIER_HOST) {
        spw_counter_shift(&backing->counters->host_used_bytes,
                          change * (int64_t)backing->granule_bytes);
        spw_pool_stock_note_reserved(backing->counters);
    }
}

void spw_pool_backing_count_host(struct spw_backing *backing, int64_t bytes, int64_t used)
{
    struct spw_counters *counters = backing->counters;

    spw_counter_shift(&counters->host_bytes, bytes);
    spw_counter_peak(&counters->host_peak_bytes, &counters->host_bytes);
    spw_counter_shift(&counters->host_used_bytes, used);
    spw_pool_stock_note_reserved(counters);
}

/* ---- unmapping ---- */

static uint64_t chunk_bytes(const struct spw_backing *backing, size_t index)
{
    return backing->granule_bytes << backing->granules[index].order;
}

/* Makes the unmapped chunk that begins at a granule spare. If the chunk is exported, releases it
 * instead. */
static void make_spare(struct spw_backing *backing, size_t index)
{
    const struct spw_granule granule = backing->granules[index];
    size_t size = spw_pool_stock_size(granule.order);

    if (granule.exported) {
        spw_pool_stock_discard(&backing->stock, granule.order, granule.chunk);
        backing->broken -= size;
    } else {
        spw_pool_stock_put(&backing->stock, granule.tier, granule.order, granule.chunk);
        count_use(backing, granule.tier, -(int64_t)size);
    }
    backing->away -= granule.away ? size : 0;
    memset(&backing->granules[index], 0, size * sizeof(backing->granules[0]));
}

/* Unmaps granules [first, last), and makes their chunks spare. The range consists of whole chunks,
 * all of which are mapped or away. Returns false if the backend refused. Chunks that it did unmap
 * are then spare; the others are unchanged. */
static bool unmap_run(struct spw_backing *backing, size_t first, size_t last)
{
    enum spw_err err = SPW_OK;

    for (size_t i = first, end; i < last && err == SPW_OK; i = end) {
        uint64_t bytes, done;

        end = spw_pool_backing_end_of_size(backing, i, last);
        done = bytes = (uint64_t)(end - i) << backing->granule_shift;
        if (!backing->granules[i].away) {
            err = backing->vm->ops->unmap(backing->vm, spw_pool_backing_address(backing, i), bytes,
                                          chunk_bytes(backing, i), &done);
        }
        if (err == SPW_OK) {
            done = bytes;
        }
        for (size_t k = i, next, stop = i + (size_t)(done >> backing->granule_shift); k < stop;
             k = next) {
            next = spw_pool_backing_chunk_end(backing, k);
            make_spare(backing, k);
        }
    }
    return err == SPW_OK;
}

/* Returns true if a granule has a chunk that is away, or whose mapping was lost by a move. */
static bool is_unmapped(const struct spw_backing *backing, size_t granule)
{
    return backing->granules[granule].lost == SPW_LOST_MAPPING || backing->granules[granule].away;
}

/* Returns true if the chunk of a granule is mapped there. */
static bool is_mapped(const struct spw_backing *backing, size_t granule)
{
    return backing->granules[granule].chunk != 0 && !backing->granules[granule].swapped &&
           !is_unmapped(backing, granule);
}

/* Returns the number of granules of a tier that are mapped in the arena. */
static size_t mapped_of(const struct spw_backing *backing, enum spw_tier tier)
{
    const struct spw_stock_tier *store = &backing->stock.tiers[tier];

    return store->total - store->spare - store->held;
}

static void unmap_everything(struct spw_backing *backing)
{
    size_t count = (size_t)(backing->bytes >> backing->granule_shift), left = 0;

    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        left += mapped_of(backing, tier);
    }
    for (size_t i = 0, first; i < count && left > 0;) {
        if (!is_mapped(backing, i) && !is_unmapped(backing, i)) {
            i++;
            continue;
        }
        if (is_unmapped(backing, i)) {
            size_t end = spw_pool_backing_chunk_end(backing, i);

            make_spare(backing, i);
            left -= end - i;
            i = end;
            continue;
        }
        for (first = i; i < count && is_mapped(backing, i); i++) {
            left--;
        }
        (void)unmap_run(backing, first, i);
    }
}

void spw_pool_backing_uncount(const struct spw_backing *backing, struct spw_counters *counters)
{
    int64_t granule = (int64_t)backing->granule_bytes;
    const struct spw_stock_tier *tiers = backing->stock.tiers;

    spw_counter_shift(&counters->committed_bytes, -(int64_t)tiers[SPW_TIER_DEVICE].total * granule);
    spw_counter_shift(&counters->host_bytes, -(int64_t)tiers[SPW_TIER_HOST].total * granule);
    spw_counter_shift(&counters->host_used_bytes,
                      -(int64_t)mapped_of(backing, SPW_TIER_HOST) * granule);
    spw_counter_shift(&counters->swapped_bytes, -(int64_t)backing->swapped * granule);
}

void spw_pool_backing_fini(struct spw_backing *backing, bool release)
{
    if (backing->granules == NULL) {
        return;
    }
    if (release) {
        unmap_everything(backing);
        for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
            (void)spw_pool_stock_release(&backing->stock, tier, SIZE_MAX);
        }
        backing->vm->ops->unreserve(backing->vm, backing->base, reserved_bytes(backing));
    }
    count_use(backing, SPW_TIER_HOST, -(int64_t)mapped_of(backing, SPW_TIER_HOST));
    spw_counter_shift(&backing->counters->swapped_bytes,
                      -(int64_t)(backing->swapped * backing->granule_bytes));
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        spw_pool_stock_fini(&backing->stock, tier);
    }
    spw_pool_alias_fini(&backing->stock.aliases);
    munmap(backing->granules, table_bytes(backing));
    free(backing->kept);
    memset(backing, 0, sizeof(*backing));
}

void spw_pool_backing_mark_broken(struct spw_backing *backing, size_t granule)
{
    backing->broken += !backing->granules[granule].broken;
    backing->granules[granule].broken = true;
}

static void mark_granule_lost(struct spw_backing *backing, size_t granule, enum spw_lost lost)
{
    struct spw_granule *changed = &backing->granules[granule];

    if (changed->lost == SPW_LOST_NOTHING && lost != SPW_LOST_NOTHING) {
        backing->lost++;
        spw_pool_backing_mark_broken(backing, granule);
    } else if (changed->lost != SPW_LOST_NOTHING && lost == SPW_LOST_NOTHING) {
        backing->lost--;
        backing->broken -= !changed->exported;
        changed->broken = changed->exported;
    }
    changed->lost = (uint8_t)lost;
}

void spw_pool_backing_mark_lost(struct spw_backing *backing, size_t granule, enum spw_lost lost)
{
    size_t end = spw_pool_backing_chunk_end(backing, granule);

    for (size_t i = granule; i < end; i++) {
        mark_granule_lost(backing, i, lost);
    }
}

size_t spw_pool_backing_end_of_size(const struct spw_backing *backing, size_t first, size_t last)
{
    size_t end = first;

    while (end < last && backing->granules[end].order == backing->granules[first].order &&
           backing->granules[end].away == backing->granules[first].away) {
        end = spw_pool_backing_chunk_end(backing, end);
    }
    return end;
}

bool spw_pool_backing_is_broken(const struct spw_backing *backing, uint64_t address, uint64_t end)
{
    size_t last = spw_pool_backing_index(backing, end - 1);

    for (size_t i = spw_pool_backing_index(backing, address); backing->broken > 0 && i <= last;
         i++) {
        if (backing->granules[i].broken) {
            return true;
        }
    }
    return false;
}

bool spw_pool_backing_on_host(const struct spw_backing *backing, uint64_t address, uint64_t end)
{
    size_t last = spw_pool_backing_index(backing, end - 1);

    for (size_t i = spw_pool_backing_index(backing, address);
         spw_pool_backing_uses_host(backing) && i <= last; i++) {
        if (backing->granules[i].tier == SPW_TIER_HOST) { /* set only with a chunk */
            return true;
        }
    }
    return false;
}

uint64_t spw_pool_backing_host_bytes(const struct spw_backing *backing, uint64_t address,
                                     uint64_t end)
{
    uint64_t bytes = 0;

    for (uint64_t at = address, next; spw_pool_backing_uses_host(backing) && at < end; at = next) {
        next = spw_pool_backing_down(backing, at) + backing->granule_bytes;
        next = next < end ? next : end;
        if (backing->granules[spw_pool_backing_index(backing, at)].tier == SPW_TIER_HOST) {
            bytes += next - at;
        }
    }
    return bytes;
}

uint64_t spw_pool_backing_run(const struct spw_backing *backing, uint64_t address, uint64_t end)
{
    uint64_t at = spw_pool_backing_down(backing, address) + backing->granule_bytes;
    uint8_t tier = backing->granules[spw_pool_backing_index(backing, address)].tier;

    while (at < end && backing->granules[spw_pool_backing_index(backing, at)].tier == tier) {
        at += backing->granule_bytes;
    }
    return (at < end ? at : end) - address;
}

size_t spw_pool_backing_missing(const struct spw_backing *backing, uint64_t address, uint64_t end)
{
    size_t last = spw_pool_backing_index(backing, end - 1), missing = 0;

    for (size_t i = spw_pool_backing_index(backing, address); i <= last; i++) {
        missing += backing->granules[i].chunk == 0;
    }
    return missing;
}

void spw_pool_backing_note_free(struct spw_backing *backing, uint64_t address, uint64_t end,
                                const struct spw_stream_queue *queue)
{
    size_t last = spw_pool_backing_index(backing, end - 1);

    for (size_t i = spw_pool_backing_index(backing, address); i <= last; i++) {
        struct spw_granule *granule = &backing->granules[i];

        if (granule->queue == queue->number || granule->queue == SPW_STREAM_QUEUE_IDLE ||
            spw_pool_stream_queue_passed(backing->queues, granule->queue, granule->seq)) {
            granule->queue = queue->number;
            granule->seq = queue->seq;
        } else {
            /* Work of two queues is pending in one granule. Only a later fence of the whole device,
             * or a later wait for the device, covers the work of both. */
            struct spw_stream_queue *all = spw_pool_stream_queue_all(backing->queues);

            spw_pool_stream_queue_stamp(backing->queues, all);
            granule->queue = SPW_STREAM_QUEUE_ALL;
            granule->seq = all->seq;
        }
    }
}

void spw_pool_backing_keep(struct spw_backing *backing, uint64_t address, uint64_t end, bool keep)
{
    size_t last = spw_pool_backing_index(backing, end - 1);

    if (backing->kept == NULL && keep) {
        size_t words = (size_t)(backing->bytes >> backing->granule_shift) / 64 + 1;

        backing->kept = calloc(words, sizeof(*backing->kept));
    }
    for (size_t i = spw_pool_backing_index(backing, address); backing->kept != NULL && i <= last;
         i++) {
        uint64_t bit = UINT64_C(1) << i % 64;

        backing->kept[i / 64] = keep ? backing->kept[i / 64] | bit : backing->kept[i / 64] & ~bit;
    }
}

/* Returns true if stealing must leave a granule alone. */
static bool is_kept(const struct spw_backing *backing, size_t index)
{
    return backing->kept != NULL && !backing->takes_kept &&
           (backing->kept[index / 64] >> index % 64 & 1) != 0;
}

static bool can_steal_granule(const struct spw_backing *backing, enum spw_tier tier, size_t index)
{
    const struct spw_granule *granule = &backing->granules[index];

    return granule->chunk != 0 && granule->tier == tier && !granule->pinned && !granule->broken &&
           !is_kept(backing, index) &&
           spw_pool_stream_queue_passed(backing->queues, granule->queue, granule->seq);
}

/* Returns true if the chunk of a granule is within [first, last) and can be stolen. */
static bool can_steal(const struct spw_backing *backing, enum spw_tier tier, size_t index,
                      size_t first, size_t last)
{
    size_t begin = spw_pool_backing_chunk_begin(backing, index),
           end = spw_pool_backing_chunk_end(backing, index);

    if (begin < first || end > last) {
        return false;
    }
    while (begin < end && can_steal_granule(backing, tier, begin)) {
        begin++;
    }
    return begin == end;
}

size_t spw_pool_backing_stealable(const struct spw_backing *backing, uint64_t address, uint64_t end)
{
    uint64_t low = spw_pool_backing_up(backing, address),
             high = spw_pool_backing_down(backing, end);
    size_t count = 0;

    if (low < high) {
        size_t first = spw_pool_backing_index(backing, low),
               last = spw_pool_backing_index(backing, high);

        for (size_t i = first, next; i < last; i = next) {
            next = spw_pool_backing_chunk_end(backing, i);
            count += can_steal(backing, SPW_TIER_DEVICE, i, first, last) ? next - i : 0;
        }
    }
    return count;
}

size_t spw_pool_backing_steal(struct spw_backing *backing, enum spw_tier tier, uint64_t address,
                              uint64_t end, size_t most)
{
    uint64_t low = spw_pool_backing_up(backing, address),
             high = spw_pool_backing_down(backing, end);
    const size_t *spare = &backing->stock.tiers[tier].spare;
    size_t before = *spare, first, last, i;
    bool going = true;

    if (low >= high) {
        return 0;
    }
    first = spw_pool_backing_index(backing, low);
    last = first + (size_t)((high - low) >> backing->granule_shift);
    for (i = last; i > first && going;) {
        size_t run_end, taken = *spare - before;

        if (taken >= most) {
            break;
        }
        if (!can_steal(backing, tier, i - 1, first, last)) {
            size_t begin = spw_pool_backing_chunk_begin(backing, i - 1);

            i = begin > first ? begin : first;
            continue;
        }
        run_end = i;
        while (i > first && run_end - i < most - taken &&
               can_steal(backing, tier, i - 1, first, last)) {
            i = spw_pool_backing_chunk_begin(backing, i - 1);
        }
        going = unmap_run(backing, i, run_end);
    }
    return *spare - before;
}

size_t spw_pool_backing_make_holes(struct spw_backing *backing, uint64_t address, uint64_t end,
                                   size_t count)
{
    size_t first = spw_pool_backing_index(backing, address),
           last = spw_pool_backing_index(backing, end - 1) + 1,
           missing = spw_pool_backing_missing(backing, address, end);

    for (size_t i = last; i > first && (i == last || missing < count); i--) {
        size_t at = i - 1, begin = spw_pool_backing_chunk_begin(backing, at),
               after = spw_pool_backing_chunk_end(backing, at);

        if (spw_host_share_takes(at - first, count, last - first) &&
            backing->granules[at].chunk != 0 &&
            can_steal(backing, SPW_TIER_DEVICE, at, first, last) &&
            unmap_run(backing, begin, after)) {
            missing += after - begin;
        }
    }
    return missing < count ? missing + spw_pool_backing_steal(backing, SPW_TIER_DEVICE, address,
                                                              end, count - missing)
                           : missing;
}

/* The granules of a range that have no chunk. `host` of them get chunks of the host. */
struct spread {
    size_t count, host; /* `count` is set only if `host` is not 0 */
    size_t first;       /* there are `index - first` such granules before granule `index` */
};

/* Chooses the tier of a granule's new chunk. */
static enum spw_tier choose_tier(const struct spw_backing *backing, const struct spread *spread,
                                 size_t index)
{
    bool host = spread->host > 0 &&
                spw_host_share_takes(index - spread->first, spread->host, spread->count);

    if (host && backing->stock.tiers[SPW_TIER_HOST].spare > 0) {
        return SPW_TIER_HOST;
    }
    return spw_pool_backing_spare(backing) > 0 ? SPW_TIER_DEVICE : SPW_TIER_HOST;
}

/* Returns how many granules from `index` on, below `last`, one chunk of a tier should cover. */
static size_t choose_length(const struct spw_backing *backing, const struct spread *spread,
                            enum spw_tier tier, size_t index, size_t last)
{
    size_t spare = backing->stock.tiers[tier].spare, end = index + 1;

    if (spread->host == 0 || spread->host == spread->count) {
        end = last;
    }
    while (end < last && choose_tier(backing, spread, end) == tier) {
        end++;
    }
    return end - index < spare ? end - index : spare;
}

/* Maps a spare chunk of at most `most` granules at granule `index`. */
static enum spw_err map_chunk(struct spw_backing *backing, enum spw_tier tier, size_t index,
                              size_t most)
{
    const struct spw_stock_tier *store = &backing->stock.tiers[tier];
    unsigned order;
    uint64_t chunk;
    enum spw_err err =
        most > 0 ? spw_pool_stock_find(&backing->stock, tier, most, &order) : SPW_E_NO_MEMORY;

    if (err != SPW_OK) {
        return err;
    }
    chunk = store->orders[order].chunks[store->orders[order].count - 1];
    err = backing->vm->ops->map(backing->vm, spw_pool_backing_address(backing, index),
                                backing->granule_bytes << order, chunk - 1);
    if (err != SPW_OK) {
        return err;
    }
    (void)spw_pool_stock_take(&backing->stock, tier, order);
    count_use(backing, tier, (int64_t)spw_pool_stock_size(order));
    for (size_t part = 0; part < spw_pool_stock_size(order); part++) {
        backing->granules[index + part] = (struct spw_granule){
            .chunk = chunk, .tier = tier, .order = (uint8_t)order, .part = (uint8_t)part};
    }
    return SPW_OK;
}

enum spw_err spw_pool_backing_set_access(struct spw_backing *backing, uint64_t address,
                                         uint64_t bytes, uint64_t chunk_bytes)
{
    enum spw_err err = backing->vm->ops->set_access(backing->vm, address, bytes, chunk_bytes);

    backing->refusals = err == SPW_OK ? 0 : backing->refusals + 1;
    return err;
}

static enum spw_err share(struct spw_backing *backing, uint64_t address, uint64_t bytes,
                          uint64_t chunk_bytes)
{
    return backing->vm->ops->share(backing->vm, address, bytes, chunk_bytes);
}

/* Gives access to granules [*first, last), which are whole chunks, in one of two ways. After a
 * failure, *first is the first granule without access. */
static enum spw_err give_access(struct spw_backing *backing, size_t *first, size_t last,
                                enum spw_err (*give)(struct spw_backing *backing, uint64_t address,
                                                     uint64_t bytes, uint64_t chunk_bytes))
{
    enum spw_err err = SPW_OK;

    for (size_t end; *first < last; *first = end) {
        end = spw_pool_backing_end_of_size(backing, *first, last);
        err =
            give(backing, spw_pool_backing_address(backing, *first),
                 (uint64_t)(end - *first) << backing->granule_shift, chunk_bytes(backing, *first));
        if (err != SPW_OK) {
            break;
        }
    }
    return err;
}

/* Maps spare chunks at granules [first, last) and gives access. After a failure, unmaps them. */
static enum spw_err map_run(struct spw_backing *backing, const struct spread *spread, size_t first,
                            size_t last)
{
    enum spw_err err = SPW_OK;
    size_t i = first, accessible = first;

    while (i < last && err == SPW_OK) {
        enum spw_tier tier = choose_tier(backing, spread, i);

        err = map_chunk(backing, tier, i, choose_length(backing, spread, tier, i, last));
        i = err == SPW_OK ? spw_pool_backing_chunk_end(backing, i) : i;
    }
    err =
        err == SPW_OK ? give_access(backing, &accessible, last, spw_pool_backing_set_access) : err;
    if (err != SPW_OK && i > first && !unmap_run(backing, first, i)) {
        /* The backend gives no access and refuses to unmap, so the granules are taken out of
         * use. */
        for (size_t k = accessible; k < i; k++) {
            if (backing->granules[k].chunk != 0) {
                spw_pool_backing_mark_broken(backing, k);
            }
        }
    }
    return err;
}

/* Gives access to the chunk of a granule, if an earlier attempt left it without access. */
static enum spw_err repair(struct spw_backing *backing, size_t granule)
{
    size_t first = spw_pool_backing_chunk_begin(backing, granule), begin = first;
    size_t end = spw_pool_backing_chunk_end(backing, granule);
    enum spw_err err = give_access(backing, &begin, end, spw_pool_backing_set_access);

    for (; err == SPW_OK && first < end; first++) {
        backing->granules[first].broken = false;
        backing->broken--;
    }
    return err;
}

enum spw_err spw_pool_backing_fill(struct spw_backing *backing, uint64_t address, uint64_t end,
                                   size_t host)
{
    size_t last = spw_pool_backing_index(backing, end - 1) + 1,
           i = spw_pool_backing_index(backing, address);
    struct spread spread = {.host = host, .first = i};

    if (host > 0) {
        spread.count = spw_pool_backing_missing(backing, address, end);
    }
    while (i < last) {
        size_t first = i;
        enum spw_err err;

        while (i < last && backing->granules[i].chunk == 0) {
            i++;
        }
        if (i > first) {
            err = map_run(backing, &spread, first, i);
        } else {
            err = backing->granules[i].broken ? repair(backing, i) : SPW_OK;
            i++;
            spread.first++;
        }
        if (err != SPW_OK) {
            return err;
        }
    }
    return SPW_OK;
}

void spw_pool_backing_give_up(struct spw_backing *backing, size_t first, size_t last)
{
    for (size_t i = first, next; i < last; i = next) {
        const struct spw_granule old = backing->granules[i];

        next = spw_pool_backing_chunk_end(backing, i);
        spw_pool_stock_put(&backing->stock, old.tier, old.order, old.chunk);
        count_use(backing, old.tier, -(int64_t)(next - i));
    }
}

void spw_pool_backing_install(struct spw_backing *backing, size_t granule, enum spw_tier to,
                              unsigned order, uint64_t chunk)
{
    size_t size = spw_pool_stock_size(order);

    for (size_t part = 0; part < size; part++) {
        struct spw_granule *changed = &backing->granules[granule + part];

        changed->chunk = chunk;
        changed->tier = to;
        changed->order = (uint8_t)order;
        changed->part = (uint8_t)part;
    }
    backing->stock.tiers[to].held -= size;
    count_use(backing, to, (int64_t)size);
}

void spw_pool_backing_exchange(struct spw_backing *backing, size_t granule, enum spw_tier to,
                               unsigned order, uint64_t chunk)
{
    spw_pool_backing_give_up(backing, granule, granule + spw_pool_stock_size(order));
    spw_pool_backing_install(backing, granule, to, order, chunk);
}

void spw_pool_backing_mark_exported(struct spw_backing *backing, size_t granule)
{
    size_t end = spw_pool_backing_chunk_end(backing, granule);

    for (size_t i = granule; i < end; i++) {
        backing->granules[i].exported = true;
        spw_pool_backing_mark_broken(backing, i);
    }
}

bool spw_pool_backing_release_exported(struct spw_backing *backing, size_t granule)
{
    return unmap_run(backing, granule, spw_pool_backing_chunk_end(backing, granule));
}

enum spw_err spw_pool_backing_refresh_access(struct spw_backing *backing, uint64_t address,
                                             uint64_t end)
{
    size_t count = spw_pool_backing_index(backing, end),
           i = spw_pool_backing_index(backing, address);

    while (i < count) {
        size_t first = i;
        enum spw_err err;

        while (i < count && is_mapped(backing, i) && backing->granules[i].lost == 0) {
            i++;
        }
        if (i == first) {
            i++;
            continue;
        }
        err = give_access(backing, &first, i, share);
        if (err != SPW_OK) {
            return err;
        }
    }
    return SPW_OK;
}
