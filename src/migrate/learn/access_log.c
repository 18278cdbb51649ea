#include "migrate/learn/access_log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "migrate/tuning.h"
#include "system/log.h"

_Atomic int spw_migrate_access_log_count;

/* ---- opening and closing ---- */

/* Enters a block under the predictor's number; 0: the predictor has no number left. */
static void enter_block(struct spw_access_log *log, const char *event, uint32_t block,
                        uint64_t address, uint64_t bytes)
{
    if (block == 0) {
        log->incomplete = true;
        return;
    }
    spw_log(SPW_LOG_DEBUG, "access %s %#llx+%llu %u", event, (unsigned long long)address,
            (unsigned long long)bytes, log->predictor.blocks[block].site);
    spw_migrate_block_index_put(&log->index, block, address, bytes);
}

static void add_block(void *cookie, uint64_t address, uint64_t bytes, uint32_t site, uint64_t age)
{
    struct spw_access_log *log = cookie;
    uint32_t block = spw_migrate_predictor_add_block(&log->predictor, bytes, site, age);

    enter_block(log, "live", block, address, bytes);
}

bool spw_migrate_access_log_open(struct spw_access_log *log, struct spw_pool *pool,
                                 struct spw_counters *counters)
{
    uint64_t base, bytes;

    memset(log, 0, sizeof(*log));
    spw_lock_init(&log->lock, SPW_LOCK_RANK_access_log);
    log->pool = pool;
    log->counters = counters;
    spw_pool_large_range(pool, &base, &bytes, &log->granule_bytes);
    log->spot_capacity = (size_t)(bytes / log->granule_bytes) + 1;
    log->target_tier = calloc(log->spot_capacity, sizeof(*log->target_tier));
    log->last_access = calloc(log->spot_capacity, sizeof(*log->last_access));
    log->seen_cold = calloc(log->spot_capacity, sizeof(*log->seen_cold));
    log->detached = calloc(log->spot_capacity, sizeof(*log->detached));
    log->spots = calloc(log->spot_capacity, sizeof(*log->spots));
    log->chunks = calloc(log->spot_capacity, sizeof(*log->chunks));
    log->needs = calloc(SPW_PREDICTOR_EVENTS, sizeof(*log->needs));
    if (log->target_tier == NULL || log->last_access == NULL || log->seen_cold == NULL ||
        log->detached == NULL || log->spots == NULL || log->chunks == NULL || log->needs == NULL ||
        !spw_migrate_predictor_init(&log->predictor) ||
        !spw_migrate_block_index_init(&log->index, base, bytes, log->granule_bytes,
                                      SPW_PREDICTOR_BLOCKS)) {
        spw_migrate_access_log_close(log);
        return false;
    }
    /* Recording starts before the live blocks are entered. A block that is freed in between is
     * removed when a later block overlaps its range. */
    atomic_store(&log->on, true);
    atomic_fetch_add(&spw_migrate_access_log_count, 1);
    spw_lock(&log->lock);
    spw_pool_each_large(pool, add_block, log);
    spw_unlock(&log->lock);
    return true;
}

void spw_migrate_access_log_close(struct spw_access_log *log)
{
    if (atomic_exchange(&log->on, false)) {
        atomic_fetch_sub(&spw_migrate_access_log_count, 1);
    }
    spw_migrate_predictor_fini(&log->predictor);
    spw_migrate_block_index_fini(&log->index);
    free(log->target_tier);
    free(log->last_access);
    free(log->seen_cold);
    free(log->detached);
    free(log->spots);
    free(log->chunks);
    free(log->needs);
    log->target_tier = NULL;
    log->last_access = NULL;
    log->seen_cold = NULL;
    log->detached = NULL;
    log->spots = NULL;
    log->chunks = NULL;
    log->needs = NULL;
    spw_lock_fini(&log->lock);
}

/* ---- recording ---- */

static void remove_block(struct spw_access_log *log, uint32_t block)
{
    spw_log(SPW_LOG_DEBUG, "access free %#llx",
            (unsigned long long)log->index.blocks[block].address);
    spw_migrate_block_index_remove(&log->index, block);
    if (log->predictor.blocks[block].untracked) {
        spw_migrate_predictor_end_untracked(&log->predictor, block);
    } else {
        spw_migrate_predictor_free(&log->predictor, block);
    }
}

/* Removes blocks whose free was not recorded. */
static void remove_overlapping(struct spw_access_log *log, uint64_t address, uint64_t bytes)
{
    uint32_t block;

    while ((block = spw_migrate_block_index_overlap(&log->index, address, address + bytes)) != 0) {
        remove_block(log, block);
    }
}

void spw_migrate_access_log_alloc(struct spw_access_log *log, uint64_t address, uint64_t bytes,
                                  uint32_t site)
{
    uint32_t block;

    if (!spw_migrate_block_index_contains(&log->index, address)) {
        return;
    }
    spw_lock(&log->lock);
    remove_overlapping(log, address, bytes);
    block = spw_migrate_predictor_alloc(&log->predictor, bytes, site);
    enter_block(log, "alloc", block, address, bytes);
    spw_unlock(&log->lock);
}

void spw_migrate_access_log_enter(struct spw_access_log *log, uint64_t address, uint64_t bytes,
                                  uint32_t site, bool untracked)
{
    uint32_t block;

    if (!spw_migrate_block_index_contains(&log->index, address)) {
        return;
    }
    spw_lock(&log->lock);
    remove_overlapping(log, address, bytes);
    block = untracked ? spw_migrate_predictor_add_untracked(&log->predictor, bytes, site)
                      : spw_migrate_predictor_add_block(&log->predictor, bytes, site, 0);
    enter_block(log, untracked ? "untracked" : "live", block, address, bytes);
    spw_unlock(&log->lock);
}

void spw_migrate_access_log_free(struct spw_access_log *log, uint64_t address)
{
    uint32_t block;

    if (!spw_migrate_block_index_contains(&log->index, address)) {
        return;
    }
    spw_lock(&log->lock);
    block = spw_migrate_block_index_find(&log->index, address);
    if (block != 0 && log->index.blocks[block].address == address) {
        remove_block(log, block);
    }
    spw_unlock(&log->lock);
}

/* True when a granule of the block is migrating to the device. */
static bool is_block_incoming(const struct spw_access_log *log, uint32_t block)
{
    const struct spw_block_range *candidate = &log->index.blocks[block];
    size_t last = spw_migrate_block_index_granule(&log->index, candidate->end - 1);

    for (size_t g = spw_migrate_block_index_granule(&log->index, candidate->address); g <= last;
         g++) {
        if (log->target_tier[g] == SPW_TIER_DEVICE + 1) {
            return true;
        }
    }
    return false;
}

/* Maps the granules [first, last] again that are detached. */
static void attach(struct spw_access_log *log, size_t first, size_t last)
{
    uint64_t base = log->index.base;

    for (size_t end; log->any_detached && first <= last; first = end) {
        end = first + 1;
        if (!log->detached[first]) {
            continue;
        }
        while (end <= last && log->detached[end]) {
            end++;
        }
        memset(&log->detached[first], 0, (end - first) * sizeof(log->detached[0]));
        if (!spw_pool_attach(log->pool, base + first * log->granule_bytes,
                             base + end * log->granule_bytes)) {
            atomic_store(&log->attach_failed, true);
        }
    }
}

/* Before a call that may use any memory: maps all granules again that are detached. */
static void attach_all(struct spw_access_log *log)
{
    if (log->any_detached) {
        log->any_detached = false;
        memset(log->detached, 0, log->spot_capacity * sizeof(log->detached[0]));
        if (!spw_pool_attach_all(log->pool)) {
            atomic_store(&log->attach_failed, true);
        }
    }
}

/* Marks the granules of an address range as accessed now. */
static void mark_access(struct spw_access_log *log, uint64_t address, uint64_t last_address)
{
    size_t last = spw_migrate_block_index_granule(&log->index, last_address);

    attach(log, spw_migrate_block_index_granule(&log->index, address), last);
    for (size_t g = spw_migrate_block_index_granule(&log->index, address); g <= last; g++) {
        log->last_access[g] = log->clock;
    }
}

/* Marks the migrating granules of an address range as accessed now. */
static void mark_migrating(struct spw_access_log *log, uint64_t address, uint64_t last_address)
{
    size_t last = spw_migrate_block_index_granule(&log->index, last_address);

    attach(log, spw_migrate_block_index_granule(&log->index, address), last);
    for (size_t g = spw_migrate_block_index_granule(&log->index, address); g <= last; g++) {
        if (log->target_tier[g] != 0) {
            log->last_access[g] = log->clock;
        }
    }
}

/* True if a block is at an address or ends there. */
static bool is_near_block(const struct spw_access_log *log, uint64_t address)
{
    return spw_migrate_block_index_find(&log->index, address) != 0 ||
           (address > log->index.base &&
            spw_migrate_block_index_find(&log->index, address - 1) != 0);
}

/* Records an access to a block, or to the granule if no block is there any more. An address just
 * behind the end of a block may mean that block. */
static void record_address(struct spw_access_log *log, uint64_t address)
{
    uint32_t block;

    if (!spw_migrate_block_index_contains(&log->index, address)) {
        return;
    }
    block = spw_migrate_block_index_find(&log->index, address);
    if (block != 0) {
        const struct spw_block_range *candidate = &log->index.blocks[block];

        if (log->predictor.blocks[block].untracked) {
            mark_migrating(log, candidate->address, candidate->end - 1);
            return;
        }
        spw_log(SPW_LOG_DEBUG, "access use %#llx", (unsigned long long)candidate->address);
        spw_migrate_predictor_use(&log->predictor, block);
        mark_access(log, candidate->address, candidate->end - 1);
    } else {
        mark_access(log, address > log->index.base ? address - 1 : address, address);
    }
}

/* Records the addresses of one call; `what` is its kind in the debug log. False if an address may
 * belong to an unknown block: the call may touch the whole block. */
static bool record_addresses(struct spw_access_log *log, const char *what,
                             const uint64_t *addresses, size_t count)
{
    bool known = true;

    log->clock++;
    for (size_t i = 0; i < count; i++) {
        known = known && (!spw_migrate_block_index_contains(&log->index, addresses[i]) ||
                          is_near_block(log, addresses[i]));
        record_address(log, addresses[i]);
    }
    if (spw_log_enabled(SPW_LOG_DEBUG)) {
        spw_log(SPW_LOG_DEBUG, "access %s %d", what, gettid());
    }
    return known;
}

void spw_migrate_access_log_record(struct spw_access_log *log, const uint64_t *addresses,
                                   size_t count, bool kernel)
{
    bool known;

    spw_lock(&log->lock);
    known =
        record_addresses(log, kernel ? "kernel" : "other", addresses, count) && !log->incomplete;
    if (!known) {
        attach_all(log);
    }
    log->complete += known;
    log->complete_non_kernel += known && !kernel;
    spw_unlock(&log->lock);
}

void spw_migrate_access_log_record_partial(struct spw_access_log *log, const uint64_t *addresses,
                                           size_t count)
{
    spw_lock(&log->lock);
    attach_all(log);
    if (count > 0) {
        (void)record_addresses(log, "partial", addresses, count);
    }
    spw_unlock(&log->lock);
}

void spw_migrate_access_log_mark_step(struct spw_access_log *log)
{
    spw_lock(&log->lock);
    spw_log(SPW_LOG_DEBUG, "access step");
    spw_migrate_predictor_mark_step(&log->predictor);
    spw_unlock(&log->lock);
}

bool spw_migrate_access_log_is_incoming(struct spw_access_log *log, const uint64_t *addresses,
                                        size_t count)
{
    bool awaits = false;

    spw_lock(&log->lock);
    for (size_t i = 0; i < count && !awaits; i++) {
        uint32_t block = spw_migrate_block_index_contains(&log->index, addresses[i])
                             ? spw_migrate_block_index_find(&log->index, addresses[i])
                             : 0;

        awaits = block != 0 && is_block_incoming(log, block);
    }
    spw_unlock(&log->lock);
    return awaits;
}

/* ---- dirty tracking ---- */

struct spw_access_log_snapshot spw_migrate_access_log_snapshot(struct spw_access_log *log,
                                                               uint64_t submissions)
{
    struct spw_access_log_snapshot snapshot = {.submissions = submissions};

    spw_lock(&log->lock);
    snapshot.complete = log->complete;
    snapshot.complete_non_kernel = log->complete_non_kernel;
    snapshot.clock = log->clock;
    snapshot.events = log->predictor.count;
    spw_unlock(&log->lock);
    return snapshot;
}

void spw_migrate_access_log_watch(struct spw_access_log *log,
                                  const struct spw_access_log_watch *move)
{
    spw_lock(&log->lock);
    for (size_t i = 0; i < move->count; i++) {
        log->target_tier[spw_migrate_block_index_granule(&log->index, move->places[i].granule)] =
            (uint8_t)(move->places[i].to + 1);
    }
    spw_unlock(&log->lock);
}

void spw_migrate_access_log_unwatch(struct spw_access_log *log,
                                    const struct spw_access_log_watch *move)
{
    spw_lock(&log->lock);
    for (size_t i = 0; i < move->count; i++) {
        log->target_tier[spw_migrate_block_index_granule(&log->index, move->places[i].granule)] = 0;
    }
    spw_unlock(&log->lock);
}

static bool is_accessed(const struct spw_access_log *log,
                        const struct spw_access_log_snapshot *since, uint64_t granule)
{
    return log->last_access[spw_migrate_block_index_granule(&log->index, granule)] > since->clock;
}

/* True when a watched granule was accessed since the watch began. */
static bool any_accessed(const struct spw_access_log *log, const struct spw_access_log_watch *move)
{
    size_t i = 0;

    while (i < move->count && !is_accessed(log, &move->since, move->places[i].granule)) {
        i++;
    }
    return i < move->count;
}

bool spw_migrate_access_log_is_dirty(struct spw_access_log *log,
                                     const struct spw_access_log_watch *watch, uint64_t submitted)
{
    const struct spw_access_log_snapshot *since = &watch->since;
    bool dirty;

    spw_lock(&log->lock);
    dirty =
        submitted - since->submissions != log->complete_non_kernel - since->complete_non_kernel ||
        any_accessed(log, watch);
    spw_unlock(&log->lock);
    return dirty;
}

size_t spw_migrate_access_log_detach(struct spw_access_log *log,
                                     const struct spw_access_log_watch *watch, uint64_t submitted,
                                     struct spw_move *move)
{
    const struct spw_access_log_snapshot *since = &watch->since;
    size_t granules = 0;

    spw_lock(&log->lock);
    if (submitted - since->submissions == log->complete - since->complete && !log->incomplete) {
        for (size_t i = 0; i < watch->count; i++) {
            size_t g = spw_migrate_block_index_granule(&log->index, watch->places[i].granule);

            log->detached[g] = !is_accessed(log, since, watch->places[i].granule);
            if (!log->detached[g]) {
                spw_pool_move_leave_out(log->pool, move, watch->places[i].granule);
            }
        }
        log->any_detached = true;
        granules = spw_pool_move_detach(log->pool, move);
    }
    spw_unlock(&log->lock);
    return granules;
}

/* ---- planning ---- */

uint64_t spw_migrate_access_log_events(struct spw_access_log *log)
{
    uint64_t events;

    spw_lock(&log->lock);
    events = log->predictor.count;
    spw_unlock(&log->lock);
    return events;
}

bool spw_migrate_access_log_find_period(struct spw_access_log *log, uint64_t *ret_events,
                                        uint64_t *ret_period)
{
    spw_lock(&log->lock);
    *ret_events = log->predictor.count;
    *ret_period = spw_migrate_predictor_period(&log->predictor);
    spw_counter_set(&log->counters->uses_foreseen, log->predictor.hits);
    spw_counter_set(&log->counters->uses_unforeseen, log->predictor.misses);
    spw_unlock(&log->lock);
    return *ret_period > 0;
}

/* Bytes of a block on the host. */
static int64_t host_bytes(const struct spw_access_log *log, uint32_t block)
{
    const struct spw_block_range *candidate = &log->index.blocks[block];
    size_t last = spw_migrate_block_index_granule(&log->index, candidate->end - 1);
    int64_t bytes = 0;

    for (size_t g = spw_migrate_block_index_granule(&log->index, candidate->address); g <= last;
         g++) {
        uint64_t begin = log->index.base + g * log->granule_bytes;
        uint64_t end = begin + log->granule_bytes;

        begin = begin > candidate->address ? begin : candidate->address;
        end = end < candidate->end ? end : candidate->end;
        bytes +=
            g < log->spot_count && log->spots[g].tier == SPW_TIER_HOST ? (int64_t)(end - begin) : 0;
    }
    return bytes;
}

/* Adds a predicted allocation or free. A free of host memory gives no room on the device. */
static void add_need(void *cookie, const struct spw_prediction *prediction)
{
    struct spw_access_log *log = cookie;
    int64_t bytes = (int64_t)prediction->bytes;

    if (prediction->kind == SPW_PREDICTOR_FREE && prediction->block != 0) {
        bytes -= host_bytes(log, prediction->block);
    }
    log->needs[log->need_count++] = (struct spw_planner_need){
        .at = prediction->distance,
        .bytes = prediction->kind == SPW_PREDICTOR_ALLOC ? bytes : -bytes};
}

/* Merges the predictions for a block into the predictions for a chunk under it. */
static void include_block(const struct spw_access_log *log, struct spw_planner_chunk *chunk,
                          uint32_t block)
{
    uint32_t next = spw_migrate_predictor_next_use(&log->predictor, block);
    uint32_t end = spw_migrate_predictor_next_free(&log->predictor, block);
    uint64_t age = spw_migrate_predictor_age(&log->predictor, block);

    if (log->predictor.blocks[block].untracked) {
        return;
    }
    if (next < chunk->next) {
        chunk->next = next;
    }
    if (end > chunk->end) {
        chunk->end = end;
    }
    if (age < chunk->age) {
        chunk->age = (uint32_t)age;
    }
}

/* Merges the predictions for all blocks on granule `g` into the predictions for its chunk. */
static void include_granule(const struct spw_access_log *log, struct spw_planner_chunk *chunk,
                            size_t g)
{
    if (log->index.covers[g] != 0) {
        include_block(log, chunk, log->index.covers[g]);
    }
    for (uint32_t b = log->index.begins[g]; b != 0; b = log->index.blocks[b].next_in_granule) {
        include_block(log, chunk, b);
    }
}

/* True if a granule of the chunk that begins with granule `g` was accessed after a record. */
static bool is_chunk_accessed(const struct spw_access_log *log, size_t g, uint64_t clock)
{
    for (size_t i = g; i < g + log->spots[g].count; i++) {
        if (log->last_access[i] > clock) {
            return true;
        }
    }
    return false;
}

/* True if submitted work may still use the chunk that begins with granule `g`. *ret_always: at
 * every plan for more than a period the chunk was on the host, and in use. */
static bool is_in_use(struct spw_access_log *log, const struct spw_access_log_goal *goal, size_t g,
                      bool *ret_always)
{
    bool used = goal->completed != NULL && is_chunk_accessed(log, g, goal->completed->clock);
    uint64_t *cold = &log->seen_cold[g];

    /* A plan to make room fetches nothing, so it does not count. */
    if (goal->bytes == 0 && goal->completed != NULL &&
        (!used || log->spots[g].tier != SPW_TIER_HOST || *cold == 0)) {
        *cold = log->predictor.count;
    }
    *ret_always =
        *cold != 0 && log->predictor.count - *cold > spw_migrate_predictor_period(&log->predictor);
    return used;
}

/* Lists the chunks that may migrate. *ret_hot as in struct spw_access_log_plan. */
static size_t collect_chunks(struct spw_access_log *log, const struct spw_access_log_goal *goal,
                             size_t *ret_hot)
{
    size_t count = 0;

    *ret_hot = 0;

    for (size_t g = 0; g < log->spot_count; g++) {
        const struct spw_granule_info *spot = &log->spots[g];
        struct spw_planner_chunk *chunk = &log->chunks[count];
        bool host = spot->tier == SPW_TIER_HOST, hot, used;

        if (spot->part != 0 || spot->block == 0 || !spot->movable) {
            log->seen_cold[g] = 0;
            continue;
        }
        used = is_in_use(log, goal, g, &hot);
        *ret_hot += hot;
        if (goal->hot && host ? !hot : used) {
            continue;
        }
        *chunk = (struct spw_planner_chunk){.index = (uint32_t)g,
                                            .count = spot->count,
                                            .next = SPW_NEVER,
                                            .age = UINT32_MAX,
                                            .priority = spot->priority,
                                            .host = host};
        for (size_t i = g; i < g + spot->count; i++) {
            include_granule(log, chunk, i);
        }
        count++;
    }
    return count;
}

static void plan(struct spw_access_log *log, const struct spw_access_log_goal *goal,
                 struct spw_access_log_plan *ret_plan)
{
    struct spw_planner_move *moves = log->moves;
    struct spw_planner_input input = {.chunks = log->chunks,
                                      .needs = log->needs,
                                      .granule_bytes = log->granule_bytes,
                                      .most = goal->most,
                                      .least_gap = SPW_TUNE_MIN_EVENTS};
    uint64_t base, period = spw_migrate_predictor_period(&log->predictor);
    int64_t room;

    log->spot_count =
        spw_pool_scan_granules(log->pool, log->spots, log->spot_capacity, &base, &room);
    log->need_count = 0;
    if (goal->bytes > 0) {
        log->needs[log->need_count++] = (struct spw_planner_need){.bytes = (int64_t)goal->bytes};
    }
    spw_migrate_predictor_forecast(&log->predictor, goal->bytes > 0 ? NULL : add_need, log);
    input.chunk_count = collect_chunks(log, goal, &ret_plan->hot);
    input.need_count = log->need_count;
    input.fetch = goal->bytes == 0;
    input.room_bytes = goal->bytes > 0 ? 0 : room;
    input.kept_bytes = (int64_t)goal->kept;
    input.least_age = period > 0 ? SPW_TUNE_MIN_EVENTS : goal->least_age;
    if (goal->bytes == 0) {
        input.least_gap += (uint32_t)(period / SPW_TUNE_LEAD_SHARE);
    }
    input.grain_events = (uint32_t)(period / SPW_TUNE_PERIOD_SHARE);
    ret_plan->count = spw_migrate_planner_run(&input, moves, &ret_plan->at);
    ret_plan->granules = 0;
    for (size_t i = 0; i < ret_plan->count; i++) {
        ret_plan->granules += moves[i].count;
        ret_plan->places[i] =
            (struct spw_move_place){.block = log->spots[moves[i].index].block,
                                    .granule = base + moves[i].index * log->granule_bytes,
                                    .to = moves[i].to_host ? SPW_TIER_HOST : SPW_TIER_DEVICE};
    }
}

void spw_migrate_access_log_plan(struct spw_access_log *log, const struct spw_access_log_goal *goal,
                                 struct spw_access_log_plan *ret_plan)
{
    spw_lock(&log->lock);
    plan(log, goal, ret_plan);
    spw_unlock(&log->lock);
}
