#include "migrate/migrate.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/likely.h"
#include "common/minmax.h"
#include "migrate/host/host_tier.h"
#include "migrate/move/migration.h"
#include "migrate/move/prefetch.h"
#include "migrate/move/throttle.h"
#include "migrate/tuning.h"
#include "system/backoff.h"
#include "system/lock.h"

struct spw_migrate {
    struct spw_migrate_config config;
    struct spw_lock lock;
    struct spw_host_tier host;
    struct spw_migrator migrator;
    struct spw_access_log log;
    struct spw_throttle throttle;
    struct spw_prefetch prefetch;
    bool was_short;         /* a shortage of memory has opened the host */
    _Atomic bool recording; /* the access log is open */
    _Atomic bool parked;    /* evicted blocks stay on the host: the program is paused */
    struct spw_swap swap;   /* memory in a file */
    /* Scratch for evictions and fetches, larger than a stack allows. */
    struct spw_access_log_plan plan;
    struct spw_move_place wanted[SPW_MOVE_GRANULES];
};

static uint64_t granule_of(const struct spw_pool *pool)
{
    uint64_t address, bytes, granule;

    spw_pool_large_range(pool, &address, &bytes, &granule);
    return granule;
}

enum spw_err spw_migrate_create(const struct spw_migrate_config *config,
                                struct spw_migrate **ret_tier)
{
    struct spw_migrate *tier = calloc(1, sizeof(*tier));

    if (tier == NULL) {
        return SPW_E_METADATA_NOMEM;
    }
    tier->config = *config;
    spw_lock_init(&tier->lock, SPW_LOCK_RANK_migrate);
    tier->host.pool = config->pool;
    tier->host.ordinal = config->ordinal;
    tier->host.limit = config->limit;
    tier->host.counters = config->counters;
    tier->host.room = config->host_room;
    tier->host.wall_of = config->host_wall;
    tier->migrator.pool = config->pool;
    tier->migrator.counters = config->counters;
    tier->migrator.ordinal = config->ordinal;
    tier->migrator.granule_bytes = granule_of(config->pool);
    tier->migrator.wait_ns = config->move_wait_ns;
    tier->migrator.overlap = config->overlap;
    tier->migrator.guarded = config->guarded;
    tier->migrator.verify = config->verify;
    tier->migrator.moved = config->moved;
    spw_migrate_throttle_init(&tier->throttle, config->pool, config->move_wait_ns, config->guarded);
    tier->prefetch.migrator = &tier->migrator;
    tier->prefetch.log = &tier->log;
    tier->prefetch.throttle = &tier->throttle;
    tier->prefetch.patience_ns = SPW_TUNE_PATIENCE * config->move_wait_ns;
    *ret_tier = tier;
    return SPW_OK;
}

void spw_migrate_destroy(struct spw_migrate *tier)
{
    if (tier == NULL) {
        return;
    }
    if (atomic_exchange(&tier->recording, false)) {
        spw_migrate_access_log_close(&tier->log);
    }
    spw_migrate_swap_fini(&tier->swap);
    spw_lock_fini(&tier->lock);
    free(tier);
}

bool spw_migrate_is_recording(const struct spw_migrate *tier)
{
    return atomic_load_explicit(&tier->recording, memory_order_acquire);
}

/* True when the host is usable. */
static bool open_host(struct spw_migrate *tier)
{
    bool open = spw_migrate_host_tier_open(&tier->host);

    spw_migrate_host_tier_refresh(&tier->host);
    return open;
}

/* Like open_host, at a shortage: the first one opens the access log. */
static bool open_host_when_short(struct spw_migrate *tier)
{
    bool open = open_host(tier);

    if (!tier->was_short && tier->host.needed && open && tier->host.can_migrate &&
        spw_migrate_access_log_open(&tier->log, tier->config.pool, tier->config.counters)) {
        tier->migrator.log = &tier->log;
        atomic_store(&tier->recording, true);
    }
    tier->was_short |= tier->host.needed;
    return open;
}

/* True when the pool has so little room left that a shortage is near. */
static bool is_nearly_full(const struct spw_migrate *tier)
{
    return spw_pool_room(tier->config.pool) <
           (int64_t)spw_migrate_prefetch_batch_bytes(&tier->prefetch);
}

void spw_migrate_prepare(struct spw_migrate *tier)
{
    spw_lock(&tier->lock);
    if (is_nearly_full(tier)) {
        spw_migrate_host_tier_probe(&tier->host);
    }
    spw_unlock(&tier->lock);
}

bool spw_migrate_has_room(struct spw_migrate *tier)
{
    const struct spw_counters *counters = tier->config.counters;
    bool room = spw_counter_get(&counters->host_used_bytes) < tier->config.limit.bytes;

    if (spw_lock_try(&tier->lock)) {
        room = room && tier->host.state != SPW_HOST_TIER_UNUSABLE;
        spw_unlock(&tier->lock);
    }
    return room;
}

bool spw_migrate_can_map_host(struct spw_migrate *tier)
{
    bool can;

    spw_lock(&tier->lock);
    can = open_host(tier) && !tier->host.pins;
    spw_unlock(&tier->lock);
    return can;
}

void spw_migrate_announce(struct spw_migrate *tier, const struct spw_request *request,
                          uint64_t host_bytes, bool moved)
{
    spw_migrate_host_tier_announce(&tier->host, request->bytes, host_bytes, moved, request->site,
                                   tier->config.describe);
}

/* ---- making room ---- */

/* Allocates; the part without room on the device goes to the host. */
static enum spw_err place_on_host(struct spw_migrate *tier, const struct spw_request *request,
                                  struct spw_result *ret_result)
{
    struct spw_request spilling = *request;
    enum spw_err err;

    spilling.may_spill = true;
    err = spw_pool_alloc(tier->config.pool, &spilling, ret_result);
    if (err == SPW_OK && ret_result->host_bytes > 0) {
        spw_counter_add(&tier->config.counters->placed_bytes, ret_result->host_bytes);
        spw_counter_add(&tier->config.counters->spilled_bytes, ret_result->host_bytes);
        spw_migrate_announce(tier, request, ret_result->host_bytes, /* moved */ false);
    }
    return err;
}

/* Evicts blocks that will not be used for long or, without predictions, were not used for long.
 * With `must` it also evicts recently used blocks. */
static enum spw_err evict(struct spw_migrate *tier, uint64_t bytes, bool must, uint64_t *ret_bytes)
{
    struct spw_move_request move = {
        .to = SPW_TIER_HOST, .bytes = bytes, .least_age = must ? 0 : SPW_TUNE_MATCH_EVENTS};
    struct spw_access_log_plan *plan = &tier->plan;
    struct spw_access_log_goal goal = {
        .bytes = bytes, .most = SPW_MOVE_GRANULES, .least_age = must ? 0 : SPW_TUNE_MATCH_EVENTS};

    if (atomic_load(&tier->recording)) {
        goal.completed = spw_migrate_throttle_completed(&tier->throttle, &tier->log);
        spw_migrate_access_log_plan(&tier->log, &goal, plan);
        if (plan->count == 0 && goal.completed != NULL) {
            goal.completed = NULL;
            spw_migrate_access_log_plan(&tier->log, &goal, plan);
        }
        move.places = plan->places;
        move.count = plan->count;
    }
    return spw_migrate_migration_run(&tier->migrator, &move, SPW_MIGRATION_AWAITED, goal.completed,
                                     tier->prefetch.patience_ns, ret_bytes);
}

/* True when the limits of device and host tier have room for all live blocks and the request. */
static bool is_possible(const struct spw_migrate *tier, const struct spw_request *request)
{
    uint64_t device = spw_counter_get(&tier->config.counters->limit_bytes);
    uint64_t live = spw_counter_get(&tier->config.counters->live_bytes);
    uint64_t most = device + tier->config.limit.bytes;
    bool on_device = request->placement != NULL && request->placement->on_device;

    return live <= most && request->bytes <= most - live &&
           (!on_device || request->bytes <= device);
}

/* Bytes that the device lacks for a request. */
static uint64_t missing_for(const struct spw_migrate *tier, uint64_t bytes)
{
    int64_t lacks =
        (int64_t)(bytes + tier->migrator.granule_bytes) - spw_pool_room(tier->config.pool);

    return lacks > 0 ? (uint64_t)lacks : 0;
}

/* Bytes to evict for a request. With predictions it is what is missing, since prefetching makes
 * room for later requests, and a little more if nothing seems to be missing or the device need not
 * idle for it. Without predictions it is the requested size, so that the next request of that size
 * finds room, but at least a batch, and at most a batch more than is missing. */
static uint64_t bytes_to_evict(struct spw_migrate *tier, uint64_t bytes)
{
    uint64_t missing = missing_for(tier, bytes);
    uint64_t batch = spw_migrate_prefetch_batch_bytes(&tier->prefetch);
    uint64_t events, period;

    if (atomic_load(&tier->recording) &&
        spw_migrate_access_log_find_period(&tier->log, &events, &period)) {
        return tier->migrator.device_busy ? missing + batch / SPW_TUNE_BUSY_BATCH_SHARE
               : missing > 0              ? missing
                                          : batch;
    }
    return spw_max(spw_min(bytes, missing + batch), batch);
}

/* Evicts until there should be room for the request. False when no block was evicted. */
static bool make_room(struct spw_migrate *tier, const struct spw_request *request)
{
    bool must = request->placement != NULL && request->placement->on_device;
    uint64_t wanted = bytes_to_evict(tier, request->bytes), moved = 0, bytes = 1;
    enum spw_err err = SPW_OK;

    while (moved < wanted && err == SPW_OK && bytes > 0) {
        err = evict(tier, wanted - moved, must, &bytes);
        moved += bytes;
    }
    if (moved > 0) {
        spw_migrate_announce(tier, request, moved, /* moved */ true);
    }
    return moved > 0;
}

static bool is_short(enum spw_err err)
{
    return err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY;
}

/* Returns how often room is made for a request. A block that must be on the device gets more tries,
 * but not as many as would empty a device that is only fragmented. */
static int tries_for(const struct spw_request *request)
{
    return request->placement != NULL && request->placement->on_device ? 8 : 1;
}

enum spw_err spw_migrate_alloc(struct spw_migrate *tier, const struct spw_request *request,
                               enum spw_err refused, struct spw_result *ret_result)
{
    enum spw_err err = refused;
    bool untried, open;

    if (!is_possible(tier, request)) {
        return refused;
    }
    spw_lock(&tier->lock);
    untried = tier->host.state == SPW_HOST_TIER_UNKNOWN;
    open = open_host_when_short(tier);
    if (open && tier->host.can_migrate && request->may_move) {
        while (is_short(err) && spw_migrate_prefetch_finish_one(&tier->prefetch)) {
            err = spw_pool_alloc(tier->config.pool, request, ret_result);
        }
        /* A part of the room may not be usable yet: it may be in granules that other blocks share,
         * or wait for pending work. Then the host serves the request, unless it must be on the
         * device. */
        for (int i = tries_for(request); i > 0 && is_short(err) && make_room(tier, request); i--) {
            err = spw_pool_alloc(tier->config.pool, request, ret_result);
        }
    }
    spw_unlock(&tier->lock);
    if (!open && untried) {
        /* The host cannot help, so the pool now waits for pending work. */
        err = spw_pool_alloc(tier->config.pool, request, ret_result);
    }
    if (open && is_short(err) && (request->placement == NULL || !request->placement->on_device)) {
        err = place_on_host(tier, request, ret_result);
    }
    if (!is_short(err)) {
        return err;
    }
    spw_lock(&tier->lock);
    spw_migrate_host_tier_refresh(&tier->host); /* the driver may have refused host memory */
    spw_unlock(&tier->lock);
    return refused;
}

bool spw_migrate_evict(struct spw_migrate *tier)
{
    struct spw_move_request move = {.to = SPW_TIER_HOST, .bytes = SPW_TUNE_EVICT_FOR_OTHERS_BYTES};
    uint64_t bytes = 0;

    spw_lock(&tier->lock);
    if (open_host_when_short(tier) && tier->host.can_migrate) {
        spw_migrate_prefetch_finish_all(&tier->prefetch);
        /* The driver's memory has no other place than the device, so a migration that was abandoned
         * before is no reason to refuse this one. */
        tier->migrator.skip = 0;
        (void)spw_migrate_migration_run(&tier->migrator, &move, SPW_MIGRATION_AWAITED,
                                        /* since */ NULL, tier->prefetch.patience_ns, &bytes);
    }
    spw_unlock(&tier->lock);
    return bytes > 0;
}

/* ---- launches of graphs ---- */

/* Fixes the blocks at these addresses in their places, or releases them. */
static void hold_blocks(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                        bool hold)
{
    const struct spw_block_attributes attributes = {.fix = hold ? SPW_FIXED_FOR_LAUNCH : 0,
                                                    .unfix = hold ? 0 : SPW_FIXED_FOR_LAUNCH};

    for (size_t i = 0; i < count; i++) {
        (void)spw_pool_set_attributes(tier->config.pool, addresses[i], 1, &attributes);
    }
}

/* Evicts other blocks than these until there is room for `wanted` bytes. */
static void make_room_beside(struct spw_migrate *tier, uint64_t wanted, const uint64_t *addresses,
                             size_t count)
{
    enum spw_err err = SPW_OK;
    uint64_t bytes = 1;
    int64_t room;

    hold_blocks(tier, addresses, count, /* hold */ true);
    while (err == SPW_OK && bytes > 0 &&
           (room = spw_pool_room(tier->config.pool)) < (int64_t)wanted) {
        err = evict(tier, (uint64_t)((int64_t)wanted - room), /* must */ true, &bytes);
    }
    hold_blocks(tier, addresses, count, /* hold */ false);
}

/* Brings back the host parts of these blocks, a batch at a time. False when a part stays. */
static bool fetch_all(struct spw_migrate *tier, const uint64_t *addresses, size_t count)
{
    struct spw_move_place *places = tier->wanted;
    struct spw_move_request move = {.places = places};
    enum spw_err err = SPW_OK;
    uint64_t wanted, bytes = 1;

    spw_migrate_prefetch_finish_all(&tier->prefetch);
    while ((move.count =
                spw_pool_find_on_host(tier->config.pool, addresses, count, places, &wanted)) > 0 &&
           err == SPW_OK && bytes > 0) {
        make_room_beside(tier, wanted, addresses, count);
        err = spw_migrate_migration_run(&tier->migrator, &move, SPW_MIGRATION_AWAITED,
                                        /* since */ NULL, tier->prefetch.patience_ns, &bytes);
    }
    return move.count == 0;
}

bool spw_migrate_fetch(struct spw_migrate *tier, const uint64_t *addresses, size_t count)
{
    bool fetched;

    if (!spw_migrate_is_recording(tier) || !tier->config.may_move() ||
        atomic_load_explicit(&tier->parked, memory_order_relaxed)) {
        return false;
    }
    if (spw_counter_get(&tier->config.counters->host_used_bytes) == 0) {
        return true;
    }
    spw_lock(&tier->lock);
    spw_migrate_host_tier_refresh(&tier->host);
    fetched = fetch_all(tier, addresses, count);
    spw_unlock(&tier->lock);
    return fetched;
}

/* ---- waiting for the device ---- */

/* Waits, at most `wait_ns`, until the device is idle. */
static enum spw_err await_idle(struct spw_pool *pool, uint64_t wait_ns)
{
    struct spw_backoff backoff = {.limit_ns = wait_ns};
    void *fence;
    enum spw_err err = spw_pool_fence_record(pool, NULL, &fence);

    if (err != SPW_OK) {
        return err;
    }
    do {
        err = spw_pool_fence_query(pool, fence);
    } while (err == SPW_E_AGAIN && spw_backoff_pause(&backoff));
    spw_pool_fence_drop(pool, fence);
    return err;
}

/* Waits until the copies of the first migration in flight are complete. */
static bool await_copies(struct spw_migrate *tier, struct spw_backoff *backoff)
{
    while (!spw_migrate_migration_is_copied(&tier->migrator)) {
        if (!spw_backoff_pause(backoff)) {
            return false;
        }
    }
    return true;
}

void spw_migrate_settle(struct spw_migrate *tier)
{
    struct spw_backoff backoff = {.limit_ns = tier->config.move_wait_ns};

    if (!spw_lock_try(&tier->lock)) {
        return; /* another thread migrates */
    }
    while (tier->migrator.in_flight > 0 && await_copies(tier, &backoff) &&
           await_idle(tier->config.pool, SPW_BACKOFF_SLEEP_NS) == SPW_OK) {
        (void)spw_migrate_prefetch_finish_one(&tier->prefetch);
    }
    spw_unlock(&tier->lock);
}

void spw_migrate_give_up(struct spw_migrate *tier)
{
    spw_lock(&tier->lock);
    spw_migrate_migration_give_up(&tier->migrator);
    (void)spw_pool_attach_all(tier->config.pool);
    spw_unlock(&tier->lock);
}

/* ---- pauses ---- */

/* Moves blocks until no movable one is left, or an attempt fails. It moves at most as many bytes as
 * there were at the beginning: new blocks of a running program could keep it busy for ever. */
static enum spw_err move_all(struct spw_migrate *tier, enum spw_tier to,
                             const struct spw_block_filter *only, uint64_t wait_ns,
                             uint64_t *ret_bytes)
{
    struct spw_migrator *migrator = &tier->migrator;
    const struct spw_counters *counters = tier->config.counters;
    const uint64_t most = spw_counter_get(to == SPW_TIER_HOST ? &counters->committed_bytes
                                                              : &counters->host_used_bytes);
    struct spw_move_request move = {.to = to,
                                    .only = only != NULL ? *only : (struct spw_block_filter){0}};
    uint64_t usual_ns = migrator->wait_ns, bytes;
    enum spw_err err;

    spw_migrate_migration_give_up(migrator);
    migrator->wait_ns = wait_ns;
    *ret_bytes = 0;
    do {
        spw_migrate_host_tier_refresh(&tier->host);
        migrator->skip = 0;
        move.bytes = spw_min(SPW_MOVE_GRANULES * migrator->granule_bytes, most - *ret_bytes);
        err = spw_migrate_migration_run(migrator, &move, SPW_MIGRATION_OTHER, /* since */ NULL,
                                        wait_ns, &bytes);
        *ret_bytes += bytes;
    } while (err == SPW_OK && bytes > 0 && *ret_bytes < most);
    migrator->wait_ns = usual_ns;
    migrator->skip = 0;
    migrator->last_skip = 0;
    return err;
}

enum spw_err spw_migrate_evict_all(struct spw_migrate *tier, const struct spw_block_filter *only,
                                   bool held, uint64_t wait_ns, uint64_t *ret_bytes)
{
    enum spw_err err = SPW_E_UNSUPPORTED;

    *ret_bytes = 0;
    spw_lock(&tier->lock);
    spw_migrate_host_tier_probe(&tier->host);
    if (tier->host.state == SPW_HOST_TIER_OPEN && tier->host.can_migrate) {
        atomic_store(&tier->parked, true);
        spw_pool_let_graphs_move(tier->config.pool, held);
        err = move_all(tier, SPW_TIER_HOST, only, wait_ns, ret_bytes);
        err = err == SPW_E_NOTHING ? SPW_OK : err;
    }
    spw_unlock(&tier->lock);
    return err;
}

void spw_migrate_return_all(struct spw_migrate *tier, uint64_t wait_ns, uint64_t *ret_bytes)
{
    enum spw_err err;
    uint64_t more;

    *ret_bytes = 0;
    spw_lock(&tier->lock);
    if (atomic_exchange(&tier->parked, false)) {
        err = move_all(tier, SPW_TIER_DEVICE, /* only */ NULL, wait_ns, ret_bytes);
        /* A second try after a driver call that failed: copies in graphs may depend on the place of
         * their memory, and no later step brings it back while memory is not short. */
        if (err != SPW_OK && err != SPW_E_NOTHING) {
            (void)move_all(tier, SPW_TIER_DEVICE, /* only */ NULL, wait_ns, &more);
            *ret_bytes += more;
        }
        spw_pool_let_graphs_move(tier->config.pool, false);
    }
    spw_unlock(&tier->lock);
}

void spw_migrate_return_some(struct spw_migrate *tier, const struct spw_block_filter *only,
                             uint64_t wait_ns, uint64_t *ret_bytes)
{
    *ret_bytes = 0;
    spw_lock(&tier->lock);
    if (atomic_load(&tier->parked)) {
        (void)move_all(tier, SPW_TIER_DEVICE, only, wait_ns, ret_bytes);
    }
    spw_unlock(&tier->lock);
}

enum spw_err spw_migrate_swap_prepare(struct spw_migrate *tier, uint64_t wait_ns)
{
    enum spw_err err;

    spw_lock(&tier->lock);
    spw_migrate_migration_give_up(&tier->migrator);
    err = await_idle(tier->config.pool, wait_ns);
    spw_unlock(&tier->lock);
    return err;
}

struct spw_swap_result spw_migrate_swap_out_all(struct spw_migrate *tier,
                                                struct spw_swap_file *file)
{
    struct spw_swap_result result;

    spw_lock(&tier->lock);
    atomic_store(&tier->parked, true);
    spw_pool_let_graphs_move(tier->config.pool, true);
    (void)spw_pool_attach_all(tier->config.pool);
    result = spw_migrate_swap_out(&tier->swap, tier->config.pool, file);
    spw_unlock(&tier->lock);
    return result;
}

struct spw_swap_result spw_migrate_swap_in_all(struct spw_migrate *tier, struct spw_swap_file *file)
{
    struct spw_swap_result result;

    spw_lock(&tier->lock);
    spw_migrate_host_tier_probe(&tier->host);
    spw_migrate_host_tier_refresh(&tier->host);
    result = spw_migrate_swap_in(&tier->swap, tier->config.pool, file,
                                 tier->host.state == SPW_HOST_TIER_OPEN && tier->host.can_migrate);
    spw_unlock(&tier->lock);
    return result;
}

/* ---- exports ---- */

void spw_migrate_hold_moves(struct spw_migrate *tier)
{
    if (tier != NULL) {
        spw_lock(&tier->lock);
        spw_migrate_prefetch_finish_all(&tier->prefetch);
        (void)spw_migrate_migration_release(&tier->migrator);
    }
}

void spw_migrate_release_moves(struct spw_migrate *tier)
{
    if (tier != NULL) {
        spw_unlock(&tier->lock);
    }
}

/* True when prefetching brings back the blocks that are worth it. */
static bool is_prefetching(struct spw_migrate *tier)
{
    uint64_t events, period;

    return atomic_load(&tier->recording) && tier->config.overlap &&
           (tier->migrator.in_flight > 0 ||
            spw_migrate_access_log_find_period(&tier->log, &events, &period));
}

/* Brings back the blocks that fit, and leaves some room free. */
static void bring_back(struct spw_migrate *tier)
{
    struct spw_move_request move = {.to = SPW_TIER_DEVICE};
    struct spw_pool_usage usage;
    uint64_t used, kept, bytes;

    spw_pool_usage(tier->config.pool, &usage);
    used = usage.live - (usage.host < usage.live ? usage.host : usage.live);
    kept = spw_migrate_prefetch_batch_bytes(&tier->prefetch);
    if (tier->host.can_migrate && used + kept < usage.limit) {
        move.bytes = usage.limit - used - kept;
        (void)spw_migrate_migration_run(&tier->migrator, &move, SPW_MIGRATION_OTHER,
                                        /* since */ NULL, tier->config.move_wait_ns, &bytes);
    }
}

void spw_migrate_idle(struct spw_migrate *tier)
{
    if (spw_counter_get(&tier->config.counters->host_used_bytes) == 0 ||
        atomic_load_explicit(&tier->parked, memory_order_relaxed) || !spw_lock_try(&tier->lock)) {
        return;
    }
    spw_migrate_host_tier_refresh(&tier->host);
    if (is_prefetching(tier)) {
        spw_migrate_prefetch_advance(&tier->prefetch, /* needed */ false, NULL, 0);
    } else {
        bring_back(tier);
    }
    spw_unlock(&tier->lock);
}

/* ---- recording ---- */

void spw_migrate_allocated(struct spw_migrate *tier, uint64_t address, uint64_t bytes,
                           uint32_t site)
{
    if (spw_migrate_is_recording(tier)) {
        spw_migrate_access_log_alloc(&tier->log, address, bytes, site);
    }
}

void spw_migrate_entered(struct spw_migrate *tier, uint64_t address, uint64_t bytes, uint32_t site,
                         bool untracked)
{
    if (spw_migrate_is_recording(tier)) {
        spw_migrate_access_log_enter(&tier->log, address, bytes, site, untracked);
    }
}

void spw_migrate_freed(struct spw_migrate *tier, uint64_t address)
{
    if (spw_migrate_is_recording(tier)) {
        spw_migrate_access_log_free(&tier->log, address);
    }
}

bool spw_migrate_wants_stream(const struct spw_migrate *tier)
{
    /* Submissions are counted only while accesses are recorded. */
    return spw_migrate_prefetch_is_due(&tier->prefetch);
}

void spw_migrate_expect(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                        const struct spw_stream *stream)
{
    bool needed;

    if (!spw_migrate_is_recording(tier) || !tier->config.overlap ||
        atomic_load_explicit(&tier->parked, memory_order_relaxed)) {
        return;
    }
    needed = spw_migrate_access_log_is_incoming(&tier->log, addresses, count);
    if ((!needed && !spw_migrate_prefetch_count(&tier->prefetch)) || !tier->config.may_move() ||
        !spw_lock_try(&tier->lock)) {
        return;
    }
    spw_migrate_host_tier_refresh(&tier->host);
    spw_migrate_prefetch_before_submit(&tier->prefetch, addresses, count, stream);
    spw_unlock(&tier->lock);
}

/* After a record: the call needs the memory that the record should have mapped again. */
static void remap_if_needed(struct spw_migrate *tier)
{
    if (SPW_UNLIKELY(atomic_load_explicit(&tier->log.attach_failed, memory_order_relaxed)) &&
        atomic_exchange(&tier->log.attach_failed, false)) {
        spw_migrate_migration_remap(&tier->migrator);
    }
}

void spw_migrate_use(struct spw_migrate *tier, const uint64_t *addresses, size_t count, bool kernel)
{
    if (spw_migrate_is_recording(tier)) {
        spw_migrate_access_log_record(&tier->log, addresses, count, kernel);
        remap_if_needed(tier);
    }
}

void spw_migrate_use_among(struct spw_migrate *tier, const uint64_t *addresses, size_t count)
{
    if (spw_migrate_is_recording(tier)) {
        spw_migrate_access_log_record_partial(&tier->log, addresses, count);
        remap_if_needed(tier);
    }
}

void spw_migrate_mark_step(struct spw_migrate *tier)
{
    if (spw_migrate_is_recording(tier)) {
        spw_migrate_access_log_mark_step(&tier->log);
    }
}
