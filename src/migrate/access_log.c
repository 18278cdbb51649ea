#include "migrate/access_log.h"

#include <stdlib.h>
#include <string.h>

enum {
    LATER_SHARE = 4,  /* part of a period by which what goes is used later than what comes */
    GRAIN_SHARE = 32, /* part of a period within which it is all one what goes first */
    SOON = 16         /* events in which a block that is used does not go to the host */
};

_Atomic int spw_migrate_access_log_watched;

/* ---- opening and closing ---- */

static void enter_block(void *cookie, uint64_t address, uint64_t bytes, uint32_t site, uint64_t age)
{
    struct spw_access_log *heat = cookie;
    uint32_t block = spw_migrate_predictor_adopt(&heat->order, bytes, site, age);

    heat->blind = heat->blind || block == 0;
    if (block != 0) {
        spw_migrate_block_index_put(&heat->places, block, address, bytes);
    }
}

bool spw_migrate_access_log_open(struct spw_access_log *heat, struct spw_pool *pool,
                                 struct spw_counters *counters)
{
    uint64_t base, bytes;

    memset(heat, 0, sizeof(*heat));
    spw_lock_init(&heat->lock, SPW_LOCK_RANK_access_log);
    heat->pool = pool;
    heat->counters = counters;
    spw_pool_large_range(pool, &base, &bytes, &heat->granule_bytes);
    heat->spot_capacity = (size_t)(bytes / heat->granule_bytes) + 1;
    heat->need_capacity = SPW_PREDICTOR_EVENTS / 4;
    heat->moving = calloc(heat->spot_capacity, sizeof(*heat->moving));
    heat->touched = calloc(heat->spot_capacity, sizeof(*heat->touched));
    heat->spots = calloc(heat->spot_capacity, sizeof(*heat->spots));
    heat->granules = calloc(heat->spot_capacity, sizeof(*heat->granules));
    heat->needs = calloc(heat->need_capacity, sizeof(*heat->needs));
    if (heat->moving == NULL || heat->touched == NULL || heat->spots == NULL ||
        heat->granules == NULL || heat->needs == NULL ||
        !spw_migrate_predictor_init(&heat->order) ||
        !spw_migrate_block_index_init(&heat->places, base, bytes, heat->granule_bytes,
                                      SPW_PREDICTOR_BLOCKS)) {
        spw_migrate_access_log_close(heat);
        return false;
    }
    /* What is freed from here on is noted, or its place is found taken by the next block. */
    atomic_store(&heat->on, true);
    atomic_fetch_add(&spw_migrate_access_log_watched, 1);
    spw_lock(&heat->lock);
    spw_pool_each_large(pool, enter_block, heat);
    spw_unlock(&heat->lock);
    return true;
}

void spw_migrate_access_log_close(struct spw_access_log *heat)
{
    if (atomic_exchange(&heat->on, false)) {
        atomic_fetch_sub(&spw_migrate_access_log_watched, 1);
    }
    spw_lock_fini(&heat->lock);
    spw_migrate_predictor_fini(&heat->order);
    spw_migrate_block_index_fini(&heat->places);
    free(heat->moving);
    free(heat->touched);
    free(heat->spots);
    free(heat->granules);
    free(heat->needs);
    heat->moving = NULL;
    heat->touched = NULL;
    heat->spots = NULL;
    heat->granules = NULL;
    heat->needs = NULL;
}

/* ---- noting ---- */

static void forget(struct spw_access_log *heat, uint32_t block)
{
    spw_migrate_block_index_remove(&heat->places, block);
    spw_migrate_predictor_free(&heat->order, block);
}

void spw_migrate_access_log_alloc(struct spw_access_log *heat, uint64_t address, uint64_t bytes,
                                  uint32_t site)
{
    uint32_t block;

    if (!spw_migrate_block_index_own(&heat->places, address)) {
        return;
    }
    spw_lock(&heat->lock);
    /* Blocks whose end was not seen. */
    while ((block = spw_migrate_block_index_touch(&heat->places, address, address + bytes)) != 0) {
        forget(heat, block);
    }
    block = spw_migrate_predictor_alloc(&heat->order, bytes, site);
    heat->blind = heat->blind || block == 0;
    if (block != 0) {
        spw_migrate_block_index_put(&heat->places, block, address, bytes);
    }
    spw_unlock(&heat->lock);
}

void spw_migrate_access_log_free(struct spw_access_log *heat, uint64_t address)
{
    uint32_t block;

    if (!spw_migrate_block_index_own(&heat->places, address)) {
        return;
    }
    spw_lock(&heat->lock);
    block = spw_migrate_block_index_find(&heat->places, address);
    if (block != 0 && heat->places.blocks[block].address == address) {
        forget(heat, block);
    }
    spw_unlock(&heat->lock);
}

/* Whether a granule of the block moves to the device. */
static bool comes(const struct spw_access_log *heat, uint32_t block)
{
    const struct spw_place *place = &heat->places.blocks[block];
    size_t last = spw_migrate_block_index_granule(&heat->places, place->end - 1);

    for (size_t g = spw_migrate_block_index_granule(&heat->places, place->address); g <= last;
         g++) {
        if (heat->moving[g] == SPW_TIER_DEVICE + 1) {
            return true;
        }
    }
    return false;
}

/* Notes that the granules from one address to the other are touched. */
static void touch(struct spw_access_log *heat, uint64_t address, uint64_t last_address)
{
    size_t last = spw_migrate_block_index_granule(&heat->places, last_address);

    for (size_t g = spw_migrate_block_index_granule(&heat->places, address); g <= last; g++) {
        heat->touched[g] = heat->clock;
    }
}

/* Notes the use of what an address names: a block, or what is left of one that is gone. An address
 * behind the end of a block means that. */
static void use(struct spw_access_log *heat, uint64_t address)
{
    uint32_t block;

    if (!spw_migrate_block_index_own(&heat->places, address)) {
        return;
    }
    block = spw_migrate_block_index_find(&heat->places, address);
    if (block != 0) {
        const struct spw_place *place = &heat->places.blocks[block];

        spw_migrate_predictor_use(&heat->order, block);
        touch(heat, place->address, place->end - 1);
    } else {
        touch(heat, address > heat->places.base ? address - 1 : address, address);
    }
}

/* Notes a call. */
static void note(struct spw_access_log *heat, const uint64_t *addresses, size_t count)
{
    heat->clock++;
    for (size_t i = 0; i < count; i++) {
        use(heat, addresses[i]);
    }
}

void spw_migrate_access_log_record(struct spw_access_log *heat, const uint64_t *addresses,
                                   size_t count, bool kernel)
{
    spw_lock(&heat->lock);
    note(heat, addresses, count);
    heat->known += !heat->blind;
    heat->certain += !heat->blind && !kernel;
    spw_unlock(&heat->lock);
}

void spw_migrate_access_log_record_partial(struct spw_access_log *heat, const uint64_t *addresses,
                                           size_t count)
{
    spw_lock(&heat->lock);
    note(heat, addresses, count);
    spw_unlock(&heat->lock);
}

void spw_migrate_access_log_meet_kernel(struct spw_access_log *heat)
{
    spw_lock(&heat->lock);
    spw_migrate_predictor_renew(&heat->order);
    spw_unlock(&heat->lock);
}

bool spw_migrate_access_log_awaits(struct spw_access_log *heat, const uint64_t *addresses,
                                   size_t count)
{
    bool awaits = false;

    spw_lock(&heat->lock);
    for (size_t i = 0; i < count && !awaits; i++) {
        uint32_t block = spw_migrate_block_index_own(&heat->places, addresses[i])
                             ? spw_migrate_block_index_find(&heat->places, addresses[i])
                             : 0;

        awaits = block != 0 && comes(heat, block);
    }
    spw_unlock(&heat->lock);
    return awaits;
}

/* ---- moves under way ---- */

struct spw_access_log_moment spw_migrate_access_log_now(struct spw_access_log *heat,
                                                        uint64_t submissions)
{
    struct spw_access_log_moment moment = {.submissions = submissions};

    spw_lock(&heat->lock);
    moment.known = heat->known;
    moment.certain = heat->certain;
    moment.clock = heat->clock;
    moment.events = heat->order.count;
    spw_unlock(&heat->lock);
    return moment;
}

void spw_migrate_access_log_begin_move(struct spw_access_log *heat,
                                       const struct spw_access_log_move *move)
{
    spw_lock(&heat->lock);
    for (size_t i = 0; i < move->count; i++) {
        heat->moving[spw_migrate_block_index_granule(&heat->places, move->places[i].granule)] =
            (uint8_t)(move->places[i].to + 1);
    }
    spw_unlock(&heat->lock);
}

void spw_migrate_access_log_end_move(struct spw_access_log *heat,
                                     const struct spw_access_log_move *move)
{
    spw_lock(&heat->lock);
    for (size_t i = 0; i < move->count; i++) {
        heat->moving[spw_migrate_block_index_granule(&heat->places, move->places[i].granule)] = 0;
    }
    spw_unlock(&heat->lock);
}

static bool is_named(const struct spw_access_log *heat, const struct spw_access_log_moment *since,
                     uint64_t granule)
{
    return heat->touched[spw_migrate_block_index_granule(&heat->places, granule)] > since->clock;
}

/* Whether something that came since names what moves. */
static bool is_disturbed(const struct spw_access_log *heat, const struct spw_access_log_move *move)
{
    size_t i = 0;

    while (i < move->count && !is_named(heat, &move->since, move->places[i].granule)) {
        i++;
    }
    return i < move->count;
}

enum spw_access_log_verdict spw_migrate_access_log_judge(struct spw_access_log *heat,
                                                         const struct spw_access_log_move *move,
                                                         uint64_t submitted)
{
    enum spw_access_log_verdict verdict = SPW_ACCESS_LOG_TOUCHED;
    uint64_t since = submitted - move->since.submissions;

    spw_lock(&heat->lock);
    if (is_disturbed(heat, move)) {
        verdict = SPW_ACCESS_LOG_TOUCHED;
    } else if (since == heat->certain - move->since.certain) {
        verdict = SPW_ACCESS_LOG_UNTOUCHED;
    } else if (since == heat->known - move->since.known) {
        verdict = SPW_ACCESS_LOG_UNNAMED;
    }
    spw_unlock(&heat->lock);
    return verdict;
}

bool spw_migrate_access_log_tells(struct spw_access_log *heat,
                                  const struct spw_access_log_moment *since, uint64_t submitted)
{
    bool tells;

    spw_lock(&heat->lock);
    tells = submitted - since->submissions == heat->known - since->known;
    spw_unlock(&heat->lock);
    return tells;
}

bool spw_migrate_access_log_is_named(struct spw_access_log *heat,
                                     const struct spw_access_log_moment *since, uint64_t granule)
{
    bool named;

    spw_lock(&heat->lock);
    named = is_named(heat, since, granule);
    spw_unlock(&heat->lock);
    return named;
}

/* ---- planning ---- */

uint64_t spw_migrate_access_log_events(struct spw_access_log *heat)
{
    uint64_t events;

    spw_lock(&heat->lock);
    events = heat->order.count;
    spw_unlock(&heat->lock);
    return events;
}

bool spw_migrate_access_log_knows(struct spw_access_log *heat, uint64_t *ret_events,
                                  uint64_t *ret_period)
{
    spw_lock(&heat->lock);
    *ret_events = heat->order.count;
    *ret_period = spw_migrate_predictor_period(&heat->order);
    spw_counter_set(&heat->counters->uses_foreseen, heat->order.hits);
    spw_counter_set(&heat->counters->uses_unforeseen, heat->order.misses);
    spw_unlock(&heat->lock);
    return *ret_period > 0;
}

struct spw_predictor_course spw_migrate_access_log_course(struct spw_access_log *heat)
{
    struct spw_predictor_course course;

    spw_lock(&heat->lock);
    course = spw_migrate_predictor_course(&heat->order);
    spw_unlock(&heat->lock);
    return course;
}

/* The part of a block that lies on the host. */
static int64_t host_bytes(const struct spw_access_log *heat, uint32_t block)
{
    const struct spw_place *place = &heat->places.blocks[block];
    size_t last = spw_migrate_block_index_granule(&heat->places, place->end - 1);
    int64_t bytes = 0;

    for (size_t g = spw_migrate_block_index_granule(&heat->places, place->address); g <= last;
         g++) {
        uint64_t begin = heat->places.base + g * heat->granule_bytes;
        uint64_t end = begin + heat->granule_bytes;

        begin = begin > place->address ? begin : place->address;
        end = end < place->end ? end : place->end;
        bytes += g < heat->spot_count && heat->spots[g].tier == SPW_TIER_HOST
                     ? (int64_t)(end - begin)
                     : 0;
    }
    return bytes;
}

/* What is freed on the host gives no room on the device. */
static void add_need(void *cookie, const struct spw_predictor_expected *expected)
{
    struct spw_access_log *heat = cookie;
    int64_t bytes = (int64_t)expected->bytes;

    if (expected->kind == SPW_PREDICTOR_FREE && expected->block != 0) {
        bytes -= host_bytes(heat, expected->block);
    }
    if (heat->need_count < heat->need_capacity) {
        heat->needs[heat->need_count++] = (struct spw_planner_need){
            .at = expected->distance,
            .bytes = expected->kind == SPW_PREDICTOR_ALLOC ? bytes : -bytes};
    }
}

/* Makes a granule as hot as a block on it is. */
static void warm(const struct spw_access_log *heat, struct spw_planner_granule *granule,
                 uint32_t block)
{
    uint32_t next = spw_migrate_predictor_next(&heat->order, block);
    uint32_t end = spw_migrate_predictor_end(&heat->order, block);
    uint64_t age = spw_migrate_predictor_age(&heat->order, block);

    if (next < granule->next) {
        granule->next = next;
    }
    if (end > granule->end) {
        granule->end = end;
    }
    if (age < granule->age) {
        granule->age = (uint32_t)age;
    }
}

/* Describes the granules that can be moved; *ret_hot as in struct spw_access_log_plan. */
static size_t describe(struct spw_access_log *heat, const struct spw_access_log_wish *wish,
                       size_t *ret_hot)
{
    size_t count = 0;

    *ret_hot = 0;

    for (size_t g = 0; g < heat->spot_count; g++) {
        const struct spw_granule_info *spot = &heat->spots[g];
        struct spw_planner_granule *granule = &heat->granules[count];

        bool host = spot->tier == SPW_TIER_HOST;
        bool hot = wish->passed != NULL && heat->touched[g] > wish->passed->clock;

        if (spot->block == 0 || !spot->movable) {
            continue;
        }
        *ret_hot += hot && host;
        if (hot != (wish->hot && host)) {
            continue;
        }
        *granule = (struct spw_planner_granule){.index = (uint32_t)g,
                                                .next = SPW_PREDICTOR_NEVER,
                                                .age = UINT32_MAX,
                                                .priority = spot->priority,
                                                .host = host};
        if (heat->places.covers[g] != 0) {
            warm(heat, granule, heat->places.covers[g]);
        }
        for (uint32_t b = heat->places.begins[g]; b != 0; b = heat->places.blocks[b].beside) {
            warm(heat, granule, b);
        }
        count++;
    }
    return count;
}

static void plan(struct spw_access_log *heat, const struct spw_access_log_wish *wish,
                 struct spw_access_log_plan *ret_plan)
{
    struct spw_planner_move moves[SPW_MOVE_GRANULES];
    struct spw_planner_question question = {.granules = heat->granules,
                                            .needs = heat->needs,
                                            .granule_bytes = heat->granule_bytes,
                                            .most = wish->most,
                                            .later = SOON};
    uint64_t base, period = spw_migrate_predictor_period(&heat->order);
    int64_t room;

    heat->spot_count =
        spw_pool_scan_granules(heat->pool, heat->spots, heat->spot_capacity, &base, &room);
    heat->need_count = 0;
    if (wish->bytes > 0) {
        heat->needs[heat->need_count++] = (struct spw_planner_need){.bytes = (int64_t)wish->bytes};
    }
    spw_migrate_predictor_foresee(&heat->order, wish->bytes > 0 ? NULL : add_need, heat);
    question.granule_count = describe(heat, wish, &ret_plan->hot);
    question.need_count = heat->need_count;
    question.fetch = wish->bytes == 0;
    question.room_bytes = wish->bytes > 0 ? 0 : room - (int64_t)wish->kept;
    question.least_age = period > 0 ? SOON : wish->least_age;
    if (wish->bytes == 0) {
        question.later += (uint32_t)(period / LATER_SHARE);
    }
    question.grain = (uint32_t)(period / GRAIN_SHARE);
    ret_plan->count = spw_migrate_planner_answer(&question, moves, &ret_plan->at);
    for (size_t i = 0; i < ret_plan->count; i++) {
        ret_plan->places[i] =
            (struct spw_move_place){.block = heat->spots[moves[i].index].block,
                                    .granule = base + moves[i].index * heat->granule_bytes,
                                    .to = moves[i].to_host ? SPW_TIER_HOST : SPW_TIER_DEVICE};
    }
}

void spw_migrate_access_log_plan(struct spw_access_log *heat,
                                 const struct spw_access_log_wish *wish,
                                 struct spw_access_log_plan *ret_plan)
{
    spw_lock(&heat->lock);
    plan(heat, wish, ret_plan);
    spw_unlock(&heat->lock);
}
