#include "pool/backing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t address_of(const struct spw_backing *backing, size_t index)
{
    return backing->base + ((uint64_t)index << backing->granule_shift);
}

/* The table covers the whole arena. Most of it is never touched, and untouched pages cost nothing.
 */
static size_t table_bytes(const struct spw_backing *backing)
{
    return (size_t)(backing->bytes >> backing->granule_shift) * sizeof(struct spw_granule);
}

static uint64_t reserved_bytes(const struct spw_backing *backing)
{
    return backing->bytes + backing->staging_bytes;
}

enum spw_err spw_pool_backing_init(struct spw_backing *backing,
                                   const struct spw_backing_config *config)
{
    enum spw_err err;
    void *table;

    *backing = (struct spw_backing){.ops = config->ops,
                                    .vm = config->vm,
                                    .queues = config->queues,
                                    .counters = config->counters,
                                    .host_chunks = config->host_chunks,
                                    .bytes = config->arena_bytes,
                                    .staging_bytes = config->staging_bytes,
                                    .granule_bytes = config->granule_bytes};
    backing->granule_shift = (unsigned)__builtin_ctzll(config->granule_bytes);
    table = mmap(NULL, table_bytes(backing), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) {
        return SPW_E_METADATA_NOMEM;
    }
    err = config->ops->reserve(config->vm, reserved_bytes(backing), &backing->base);
    if (err != SPW_OK) {
        munmap(table, table_bytes(backing));
        return err;
    }
    backing->granules = table;
    backing->staging = backing->base + config->arena_bytes;
    return SPW_OK;
}

/* Updates the peak of reserved memory, as programs are told it: spare chunks of the host do not
 * count. */
static void note_reserved(struct spw_counters *counters)
{
    uint64_t reserved =
        spw_counter_get(&counters->committed_bytes) + spw_counter_get(&counters->host_used_bytes);

    if (reserved > spw_counter_get(&counters->reserved_peak_bytes)) {
        spw_counter_set(&counters->reserved_peak_bytes, reserved);
    }
}

static void count_chunks(struct spw_backing *backing, enum spw_tier tier, int64_t change)
{
    struct spw_counters *counters = backing->counters;
    int64_t bytes = change * (int64_t)backing->granule_bytes;

    backing->tiers[tier].chunk_count += (size_t)change;
    if (tier == SPW_TIER_HOST) {
        if (backing->host_chunks != NULL) {
            atomic_fetch_add(backing->host_chunks, (uint64_t)change);
        }
        spw_counter_shift(&counters->host_bytes, bytes);
        spw_counter_peak(&counters->host_peak_bytes, &counters->host_bytes);
        return;
    }
    spw_counter_shift(&counters->committed_bytes, bytes);
    spw_counter_peak(&counters->committed_peak_bytes, &counters->committed_bytes);
    note_reserved(counters);
}

/* Counts chunks of the host that become mapped or unmapped. */
static void count_use(struct spw_backing *backing, enum spw_tier tier, int64_t change)
{
    if (tier == SPW_TIER_HOST) {
        spw_counter_shift(&backing->counters->host_used_bytes,
                          change * (int64_t)backing->granule_bytes);
        note_reserved(backing->counters);
    }
}

void spw_pool_backing_count_host(struct spw_backing *backing, int64_t bytes, int64_t used)
{
    struct spw_counters *counters = backing->counters;

    spw_counter_shift(&counters->host_bytes, bytes);
    spw_counter_peak(&counters->host_peak_bytes, &counters->host_bytes);
    spw_counter_shift(&counters->host_used_bytes, used);
    note_reserved(counters);
}

static void put_spare(struct spw_backing *backing, enum spw_tier tier, uint64_t chunk)
{
    struct spw_chunk_store *store = &backing->tiers[tier];

    store->spare[store->spare_count++] = chunk;
}

/* Unmaps granules [first, last), all of which are backed; their chunks become spare. False when the
 * backend refused: the part that it did unmap is spare, the rest is as before. */
static bool unmap_run(struct spw_backing *backing, size_t first, size_t last)
{
    uint64_t bytes = (uint64_t)(last - first) << backing->granule_shift, done = bytes;
    enum spw_err err = backing->ops->unmap(backing->vm, address_of(backing, first), bytes,
                                           backing->granule_bytes, &done);

    if (err == SPW_OK) {
        done = bytes;
    }
    for (size_t i = first; i < first + (size_t)(done >> backing->granule_shift); i++) {
        put_spare(backing, backing->granules[i].tier, backing->granules[i].chunk);
        count_use(backing, backing->granules[i].tier, -1);
        backing->granules[i] = (struct spw_granule){0};
    }
    return err == SPW_OK;
}

/* True if a granule is recorded as backed, but a move has lost its mapping. */
static bool is_unmapped(const struct spw_backing *backing, size_t granule)
{
    return backing->granules[granule].lost == SPW_LOST_MAPPING;
}

static void give_up_unmapped(struct spw_backing *backing, size_t granule)
{
    put_spare(backing, backing->granules[granule].tier, backing->granules[granule].chunk);
    count_use(backing, backing->granules[granule].tier, -1);
    backing->granules[granule] = (struct spw_granule){0};
}

static void unmap_everything(struct spw_backing *backing)
{
    size_t count = (size_t)(backing->bytes >> backing->granule_shift), left = 0;

    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        left += backing->tiers[tier].chunk_count - backing->tiers[tier].spare_count -
                backing->tiers[tier].held;
    }
    for (size_t i = 0, first; i < count && left > 0; i++) {
        if (backing->granules[i].chunk == 0) {
            continue;
        }
        if (is_unmapped(backing, i)) {
            give_up_unmapped(backing, i);
            left--;
            continue;
        }
        for (first = i; i < count && backing->granules[i].chunk != 0 && !is_unmapped(backing, i);
             i++) {
            left--;
        }
        (void)unmap_run(backing, first, i--);
    }
}

void spw_pool_backing_fini(struct spw_backing *backing, bool release)
{
    if (backing->granules == NULL) {
        return;
    }
    if (release) {
        unmap_everything(backing);
        for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
            (void)spw_pool_backing_release(backing, tier, SIZE_MAX);
        }
        backing->ops->unreserve(backing->vm, backing->base, reserved_bytes(backing));
    }
    for (int tier = 0; tier < SPW_TIER_COUNT; tier++) {
        /* Some chunks may have failed to be released. */
        count_chunks(backing, tier, -(int64_t)backing->tiers[tier].chunk_count);
        free(backing->tiers[tier].spare);
    }
    spw_counter_set(&backing->counters->host_used_bytes,
                    spw_counter_get(&backing->counters->vmm_host_bytes));
    munmap(backing->granules, table_bytes(backing));
    free(backing->kept);
    memset(backing, 0, sizeof(*backing));
}

void spw_pool_backing_mark_broken(struct spw_backing *backing, size_t granule)
{
    backing->broken += !backing->granules[granule].broken;
    backing->granules[granule].broken = true;
}

void spw_pool_backing_mark_lost(struct spw_backing *backing, size_t granule, enum spw_lost lost)
{
    struct spw_granule *changed = &backing->granules[granule];

    if (changed->lost == SPW_LOST_NOTHING && lost != SPW_LOST_NOTHING) {
        backing->lost++;
        spw_pool_backing_mark_broken(backing, granule);
    } else if (changed->lost != SPW_LOST_NOTHING && lost == SPW_LOST_NOTHING) {
        backing->lost--;
        backing->broken--;
        changed->broken = false;
    }
    changed->lost = (uint8_t)lost;
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
        if (backing->granules[i].chunk != 0 && backing->granules[i].tier == SPW_TIER_HOST) {
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
            /* Two queues are pending in one granule. Both are covered only by a fence of the whole
             * device, or by a wait for it, that is yet to begin. */
            struct spw_stream_queue *all = spw_pool_stream_queue_all(backing->queues);

            all->seq = backing->queues->clock;
            granule->queue = SPW_STREAM_QUEUE_ALL;
            granule->seq = all->seq;
        }
    }
}

enum spw_err spw_pool_backing_create(struct spw_backing *backing, enum spw_tier tier)
{
    struct spw_chunk_store *store = &backing->tiers[tier];
    uint64_t chunk;
    enum spw_err err;

    if (store->chunk_count == store->spare_capacity) {
        /* One entry per chunk, so that unmapping never has to allocate. */
        size_t capacity = store->spare_capacity == 0 ? 256 : store->spare_capacity * 2;
        uint64_t *grown = realloc(store->spare, capacity * sizeof(*grown));

        if (grown == NULL) {
            return SPW_E_METADATA_NOMEM;
        }
        store->spare = grown;
        store->spare_capacity = capacity;
    }
    err = backing->ops->create(backing->vm, tier, backing->granule_bytes, &chunk);
    if (err != SPW_OK) {
        return err;
    }
    put_spare(backing, tier, chunk + 1);
    count_chunks(backing, tier, 1);
    return SPW_OK;
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

/* True if stealing spares a granule. */
static bool is_kept(const struct spw_backing *backing, size_t index)
{
    return backing->kept != NULL && !backing->takes_kept &&
           (backing->kept[index / 64] >> index % 64 & 1) != 0;
}

static bool can_steal(const struct spw_backing *backing, enum spw_tier tier, size_t index)
{
    const struct spw_granule *granule = &backing->granules[index];

    return granule->chunk != 0 && granule->tier == tier && !granule->pinned && !granule->broken &&
           !is_kept(backing, index) &&
           spw_pool_stream_queue_passed(backing->queues, granule->queue, granule->seq);
}

size_t spw_pool_backing_stealable(const struct spw_backing *backing, uint64_t address, uint64_t end)
{
    uint64_t low = spw_pool_backing_up(backing, address),
             high = spw_pool_backing_down(backing, end);
    size_t count = 0;

    for (; low < high; low += backing->granule_bytes) {
        count += can_steal(backing, SPW_TIER_DEVICE, spw_pool_backing_index(backing, low));
    }
    return count;
}

size_t spw_pool_backing_steal(struct spw_backing *backing, enum spw_tier tier, uint64_t address,
                              uint64_t end, size_t most)
{
    uint64_t low = spw_pool_backing_up(backing, address),
             high = spw_pool_backing_down(backing, end);
    const size_t *spare = &backing->tiers[tier].spare_count;
    size_t before = *spare, first, i;
    bool going = true;

    if (low >= high) {
        return 0;
    }
    first = spw_pool_backing_index(backing, low);
    for (i = first + (size_t)((high - low) >> backing->granule_shift); i > first && going;) {
        size_t run_end, taken = *spare - before;

        if (taken >= most) {
            break;
        }
        if (!can_steal(backing, tier, i - 1)) {
            i--;
            continue;
        }
        run_end = i;
        while (i > first && run_end - i < most - taken && can_steal(backing, tier, i - 1)) {
            i--;
        }
        going = unmap_run(backing, i, run_end);
    }
    return *spare - before;
}

/* A range of granules, `host` of which are to be on the host. */
struct spread {
    size_t first, count; /* of the range */
    size_t host;
};

/* Chooses the tier of a granule's new chunk. */
static enum spw_tier choose_tier(const struct spw_backing *backing, const struct spread *spread,
                                 size_t index)
{
    size_t at = index - spread->first;
    bool host = (at + 1) * spread->host / spread->count > at * spread->host / spread->count;

    if (host && backing->tiers[SPW_TIER_HOST].spare_count > 0) {
        return SPW_TIER_HOST;
    }
    return spw_pool_backing_spare(backing) > 0 ? SPW_TIER_DEVICE : SPW_TIER_HOST;
}

/* Maps spare chunks at granules [first, last) and gives access. On failure, unmaps them again. */
static enum spw_err map_run(struct spw_backing *backing, const struct spread *spread, size_t first,
                            size_t last)
{
    enum spw_err err = SPW_OK;
    size_t i;

    for (i = first; i < last; i++) {
        enum spw_tier tier = choose_tier(backing, spread, i);
        struct spw_chunk_store *store = &backing->tiers[tier];
        uint64_t chunk = store->spare[store->spare_count - 1];

        err = backing->ops->map(backing->vm, address_of(backing, i), backing->granule_bytes,
                                chunk - 1);
        if (err != SPW_OK) {
            goto err_mapped;
        }
        store->spare_count--;
        count_use(backing, tier, 1);
        backing->granules[i] = (struct spw_granule){.chunk = chunk, .tier = (uint8_t)tier};
    }
    err = backing->ops->set_access(backing->vm, address_of(backing, first),
                                   (uint64_t)(last - first) << backing->granule_shift);
    if (err == SPW_OK) {
        return SPW_OK;
    }

err_mapped:
    if (i > first && !unmap_run(backing, first, i)) {
        /* Mapped without access, and the backend refuses to unmap: out of use for good. */
        for (size_t k = first; k < i; k++) {
            if (backing->granules[k].chunk != 0) {
                spw_pool_backing_mark_broken(backing, k);
            }
        }
    }
    return err;
}

enum spw_err spw_pool_backing_fill(struct spw_backing *backing, uint64_t address, uint64_t end,
                                   size_t host)
{
    size_t last = spw_pool_backing_index(backing, end - 1) + 1,
           i = spw_pool_backing_index(backing, address);
    const struct spread spread = {i, last - i, host};

    while (i < last) {
        size_t first = i;
        enum spw_err err;

        while (i < last && backing->granules[i].chunk == 0) {
            i++;
        }
        if (i == first) {
            i++;
            continue;
        }
        err = map_run(backing, &spread, first, i);
        if (err != SPW_OK) {
            return err;
        }
    }
    return SPW_OK;
}

size_t spw_pool_backing_release(struct spw_backing *backing, enum spw_tier tier, size_t most)
{
    struct spw_chunk_store *store = &backing->tiers[tier];
    size_t released = 0;

    while (released < most && store->spare_count > 0) {
        uint64_t chunk = store->spare[store->spare_count - 1] - 1;

        if (backing->ops->release(backing->vm, chunk) != SPW_OK) {
            break;
        }
        store->spare_count--;
        count_chunks(backing, tier, -1);
        released++;
    }
    return released;
}

uint64_t spw_pool_backing_hold(struct spw_backing *backing, enum spw_tier tier)
{
    struct spw_chunk_store *store = &backing->tiers[tier];

    store->held++;
    return store->spare[--store->spare_count];
}

void spw_pool_backing_unhold(struct spw_backing *backing, enum spw_tier tier, uint64_t chunk)
{
    backing->tiers[tier].held--;
    put_spare(backing, tier, chunk);
}

uint64_t spw_pool_backing_exchange(struct spw_backing *backing, size_t granule, enum spw_tier to,
                                   uint64_t chunk)
{
    struct spw_granule *changed = &backing->granules[granule];
    uint64_t old = changed->chunk;

    backing->tiers[changed->tier].held++;
    count_use(backing, changed->tier, -1);
    changed->chunk = chunk;
    changed->tier = (uint8_t)to;
    backing->tiers[to].held--;
    count_use(backing, to, 1);
    return old;
}

enum spw_err spw_pool_backing_refresh_access(struct spw_backing *backing, uint64_t address,
                                             uint64_t end)
{
    size_t count = spw_pool_backing_index(backing, end),
           i = spw_pool_backing_index(backing, address);

    while (i < count) {
        size_t first = i;
        enum spw_err err;

        while (i < count && backing->granules[i].chunk != 0 && backing->granules[i].lost == 0) {
            i++;
        }
        if (i == first) {
            i++;
            continue;
        }
        err = backing->ops->share(backing->vm, address_of(backing, first),
                                  (uint64_t)(i - first) << backing->granule_shift);
        if (err != SPW_OK) {
            return err;
        }
    }
    return SPW_OK;
}
