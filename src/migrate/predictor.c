#include "migrate/predictor.h"

#include <stdlib.h>
#include <string.h>

enum {
    GRAM = 8,                /* events whose tokens together say where to look */
    END_BITS = 16,           /* of the table of such places */
    LEAST_EQUAL = 24,        /* events that must be equal before a place is followed */
    MOST_EQUAL = 1 << 15,    /* compared at most */
    MOST_PLACES = 512,       /* looked at in one search */
    MOST_COMPARED = 1 << 17, /* events, in one search, also for a step */
    MOST_SKIPPED = 32,       /* expected events that may be missing at once */
    MOST_STRIKES = 48,       /* differences, less what was as expected since */
    SEARCH_EVERY = 32,       /* events, while lost */
    NEAR_SHARE = 8,          /* part of a period by which another one may differ and be the same */
    MORE_PERIODS = 16,       /* as many times as long, another one may be of the same order, ... */
    FEW_PERIODS = 4,         /* ... and of as many it may be one */
    UNLIKE_SHARE = 32, /* part of a step's events that may use other blocks than those before */
    MISSING_SHARE = 4, /* part of a step that need not have come twice yet */
    MOST_PERIODS = 8,  /* of events compared to find how long a step is, at most */
    MEASURE_SHARE = 4, /* part of a period after which it is looked again how long a step is */
    REACH = 4          /* periods ahead that are foreseen, if so much is known */
};

static const uint64_t odd = 0x9e3779b97f4a7c15u;

bool spw_migrate_predictor_init(struct spw_predictor *order)
{
    memset(order, 0, sizeof(*order));
    order->events = calloc(SPW_PREDICTOR_EVENTS, sizeof(*order->events));
    order->ends = calloc((size_t)1 << END_BITS, sizeof(*order->ends));
    order->blocks = calloc(SPW_PREDICTOR_BLOCKS, sizeof(*order->blocks));
    order->unused = calloc(SPW_PREDICTOR_BLOCKS, sizeof(*order->unused));
    order->block_count = 1;
    if (order->events == NULL || order->ends == NULL || order->blocks == NULL ||
        order->unused == NULL) {
        spw_migrate_predictor_fini(order);
        return false;
    }
    return true;
}

void spw_migrate_predictor_fini(struct spw_predictor *order)
{
    free(order->events);
    free(order->ends);
    free(order->blocks);
    free(order->unused);
    memset(order, 0, sizeof(*order));
}

static struct spw_predictor_event *event_at(const struct spw_predictor *order, uint64_t number)
{
    return &order->events[number % SPW_PREDICTOR_EVENTS];
}

/* Whether an event is still in the ring, with one to spare for the next. */
static bool is_kept(const struct spw_predictor *order, uint64_t number)
{
    return order->count - number < SPW_PREDICTOR_EVENTS - 1;
}

/* ---- following ---- */

/* How far back the past is that is followed; 0: none is. */
static uint64_t distance_of(const struct spw_predictor *order)
{
    return order->following ? order->count - order->cursor : 0;
}

/* The block of the event before, whose place `block` has taken. */
static void inherit(struct spw_predictor *order, uint32_t before, uint32_t block)
{
    if (before != block) {
        order->blocks[before].heir = block;
        order->blocks[block].twin = before;
    }
}

static uint32_t heir_of(const struct spw_predictor *order, uint32_t block)
{
    uint32_t heir = order->blocks[block].heir;

    return heir != 0 && order->blocks[heir].twin == block ? heir : 0;
}

/* How many events before `number` are as the ones before the next, `most` at most. */
static uint64_t count_equal(const struct spw_predictor *order, uint64_t number, uint64_t most)
{
    uint64_t equal = 0;

    while (equal < most && number > equal && is_kept(order, number - equal - 1) &&
           event_at(order, number - equal - 1)->token ==
               event_at(order, order->count - equal - 1)->token) {
        equal++;
    }
    return equal;
}

/* Whether two like events are of two blocks that are both there. */
static bool is_unlike(const struct spw_predictor *order, const struct spw_predictor_event *then,
                      const struct spw_predictor_event *now)
{
    return then->block != now->block && order->blocks[then->block].live;
}

/* How many of the last events are as those a step before, and of the same blocks but for a few. */
static uint64_t count_repeated(const struct spw_predictor *order, uint64_t step)
{
    uint64_t unlike = 0;

    for (uint64_t i = 1; i <= step; i++) {
        uint64_t number = order->count - i;
        const struct spw_predictor_event *now = event_at(order, number), *then;

        if (number < step || !is_kept(order, number - step)) {
            return i - 1;
        }
        then = event_at(order, number - step);
        unlike += is_unlike(order, then, now);
        if (then->token != now->token || unlike > step / UNLIKE_SHARE) {
            return i - 1;
        }
    }
    return step;
}

/* The size of the blocks that the last events were of and that are there. */
static uint64_t sum_bytes(struct spw_predictor *order, uint64_t events)
{
    uint64_t bytes = 0;

    order->sum++;
    for (uint64_t i = 1; i <= events; i++) {
        struct spw_predictor_block *b = &order->blocks[event_at(order, order->count - i)->block];

        bytes += b->live && b->summed != order->sum ? b->bytes : 0;
        b->summed = order->sum;
    }
    return bytes;
}

/* A place in the past that is like the present. */
struct place {
    uint64_t number; /* the event after it */
    uint64_t equal;  /* events before it that are as those before the next */
};

/* Goes on to the next place further back. False when there is none. */
static bool go_back(const struct spw_predictor *order, struct place *place)
{
    uint32_t before = event_at(order, place->number - 1)->before;

    if (before == 0 || before >= place->number || !is_kept(order, place->number - 1 - before)) {
        return false;
    }
    place->number -= before;
    return true;
}

/* The place in the past that the present is most like. */
static struct place find_likest(const struct spw_predictor *order)
{
    struct place place = {.number = order->count}, likest = {0};
    uint64_t compared = 0;

    for (int i = 0; i < MOST_PLACES && compared < MOST_COMPARED && go_back(order, &place); i++) {
        place.equal = count_equal(order, place.number, MOST_EQUAL);
        compared += place.equal;
        if (place.equal > likest.equal) {
            likest = place;
        }
    }
    return likest;
}

/* What comes next is expected to be as it was there; so many events before are as the last ones. */
static void go_to(struct spw_predictor *order, uint64_t number, uint64_t equal)
{
    order->cursor = number;
    order->following = true;
    order->strikes = 0;
    for (uint64_t i = 1; i <= equal; i++) {
        const struct spw_predictor_event *then = event_at(order, order->cursor - i);

        if (then->kind == SPW_PREDICTOR_ALLOC) {
            inherit(order, then->block, event_at(order, order->count - i)->block);
        }
    }
}

/* The length of the last step, if it follows a step and both are in what lies between the past that
 * is followed and now; else 0. The work is in proportion to the period, for it is done in each. */
static uint64_t find_step(struct spw_predictor *order)
{
    struct place place = {.number = order->count};
    uint64_t most = MOST_PERIODS * spw_migrate_predictor_period(order), compared = 0;

    most = most < MOST_COMPARED ? most : MOST_COMPARED;
    while (compared < most && go_back(order, &place)) {
        uint64_t step = order->count - place.number, repeated;

        if (step > distance_of(order)) {
            return 0;
        }
        repeated = step >= LEAST_EQUAL ? count_repeated(order, step) : 0;
        compared += GRAM + repeated;
        if (repeated > 0 && repeated >= step - step / MISSING_SHARE &&
            sum_bytes(order, step) >= order->live_bytes / 2) {
            return step;
        }
    }
    return 0;
}

/* Whether what lies between the past that is followed and now came twice. While all is as expected
 * that stays so. */
static bool came_twice(struct spw_predictor *order)
{
    uint64_t distance = distance_of(order);

    order->twice = order->twice || count_equal(order, order->cursor, distance) == distance;
    return order->twice;
}

/* Looks how long a step is, and follows the last one rather than a past that has not come twice.
 * All the steps between two evaluations are a step too, but not the one that is meant. */
static void measure(struct spw_predictor *order)
{
    uint64_t step = find_step(order), period;

    if (step > 0 && step <= spw_migrate_predictor_period(order)) {
        order->step = step;
        order->step_seen = order->count;
    }
    if (step > 0 && step < distance_of(order) && !came_twice(order)) {
        go_to(order, order->count - step, count_equal(order, order->count - step, step));
    }
    period = spw_migrate_predictor_period(order) / MEASURE_SHARE;
    order->measure_at = order->count + (period > SEARCH_EVERY ? period : SEARCH_EVERY);
}

/* Looks for a place in the past to follow. Stays where it is when there is none. */
static void search(struct spw_predictor *order)
{
    struct place place = find_likest(order);

    order->wait = SEARCH_EVERY;
    order->twice = false;
    if (place.equal >= LEAST_EQUAL) {
        go_to(order, place.number, place.equal);
        measure(order);
    }
}

/* Compares the event with what is expected, and goes on from there. False when it was not that. */
static bool follow(struct spw_predictor *order, const struct spw_predictor_event *event)
{
    for (uint64_t skipped = 0; skipped <= MOST_SKIPPED && order->cursor + skipped < order->count;
         skipped++) {
        const struct spw_predictor_event *then = event_at(order, order->cursor + skipped);

        if (then->token == event->token) {
            if (event->kind == SPW_PREDICTOR_ALLOC) {
                inherit(order, then->block, event->block);
            }
            order->cursor += skipped + 1;
            order->strikes += skipped > 0 ? 2 : 0;
            order->strikes -= skipped == 0 && order->strikes > 0 ? 1 : 0;
            order->hits++;
            return skipped == 0;
        }
    }
    order->strikes += 2;
    order->misses++;
    return false;
}

/* ---- noting ---- */

/* A number whose block is gone and that no event names any more. */
static void recycle(struct spw_predictor *order, uint32_t block)
{
    memset(&order->blocks[block], 0, sizeof(order->blocks[block]));
    order->unused[order->unused_count++] = block;
}

/* Where events end as the last ones do. */
static uint64_t *end_of(struct spw_predictor *order)
{
    uint64_t hash = 0;

    for (uint64_t i = 1; i <= GRAM && i <= order->count; i++) {
        hash = (hash ^ event_at(order, order->count - i)->token) * odd;
        hash ^= hash >> 31;
    }
    return &order->ends[(hash * odd) >> (64 - END_BITS)];
}

/* Whether a period is about the same as the one before, or one is a few of the other: to follow
 * another of some steps that are all alike is to follow the same. Of short ones, that are a part of
 * the one before, fewer count: they may be layers of something else. */
static bool are_alike(uint64_t period, uint64_t before)
{
    uint64_t most = period > before ? period : before, least = period > before ? before : period;
    uint64_t times = least > 0 ? (most + least / 2) / least : 0;
    uint64_t exact = times * least;

    return times > 0 && times <= (period > before ? MORE_PERIODS : FEW_PERIODS) &&
           (most > exact ? most - exact : exact - most) <= least / NEAR_SHARE;
}

/* Whether what is followed is what was followed before, but for a while that is not worth the name:
 * layers that are all alike may lead astray where something is new. */
static void compare_periods(struct spw_predictor *order)
{
    uint64_t period = distance_of(order), before = order->steady_period;
    bool is_gone = order->count - order->followed > before / NEAR_SHARE + 1;

    if (period == 0 || (!is_gone && !are_alike(period, before))) {
        order->surprise = order->count;
        return;
    }
    if (is_gone) {
        order->since = order->count;
        order->steady_period = period;
    }
    order->followed = order->count;
}

static void note(struct spw_predictor *order, enum spw_predictor_kind kind, uint32_t block)
{
    struct spw_predictor_block *b = &order->blocks[block];
    struct spw_predictor_event event = {
        .token = b->token * 4 + (uint32_t)kind, .block = block, .kind = (uint8_t)kind};
    struct spw_predictor_event *place = event_at(order, order->count);
    bool expected = true;
    uint64_t *end;

    if (order->count >= SPW_PREDICTOR_EVENTS && place->kind == SPW_PREDICTOR_FREE) {
        recycle(order, place->block);
    }
    if (order->following) {
        expected = follow(order, &event);
        order->following = order->strikes <= MOST_STRIKES && is_kept(order, order->cursor);
    }
    b->last = (int64_t)order->count;
    *place = event;
    order->count++;
    end = end_of(order);
    if (*end != 0 && is_kept(order, *end - 1)) {
        place->before = (uint32_t)(order->count - *end);
    }
    *end = order->count;
    order->wait -= order->wait > 0 ? 1 : 0;
    if (!expected) {
        order->surprise = order->count;
    }
    if (!expected || (!order->following && order->wait == 0)) {
        search(order);
    } else if (order->following && order->count >= order->measure_at) {
        measure(order);
    }
    compare_periods(order);
}

uint32_t spw_migrate_predictor_adopt(struct spw_predictor *order, uint64_t bytes, uint32_t site,
                                     uint64_t age)
{
    uint64_t hash = ((bytes + 1) * odd) ^ site;
    uint32_t number;

    if (order->unused_count > 0) {
        number = order->unused[--order->unused_count];
    } else if (order->block_count < SPW_PREDICTOR_BLOCKS) {
        number = order->block_count++;
    } else {
        return 0;
    }
    hash = (hash ^ hash >> 29) * odd;
    order->blocks[number] = (struct spw_predictor_block){.bytes = bytes,
                                                         .last = (int64_t)(order->count - age),
                                                         .token = (uint32_t)(hash >> 32),
                                                         .live = true};
    order->live_bytes += bytes;
    return number;
}

uint32_t spw_migrate_predictor_alloc(struct spw_predictor *order, uint64_t bytes, uint32_t site)
{
    uint32_t block = spw_migrate_predictor_adopt(order, bytes, site, 0);

    if (block != 0) {
        note(order, SPW_PREDICTOR_ALLOC, block);
    }
    return block;
}

void spw_migrate_predictor_use(struct spw_predictor *order, uint32_t block)
{
    const struct spw_predictor_event *last = event_at(order, order->count - 1);

    if (order->count == 0 || last->block != block || last->kind != SPW_PREDICTOR_USE) {
        note(order, SPW_PREDICTOR_USE, block);
    } else {
        order->blocks[block].last = (int64_t)order->count - 1;
    }
}

void spw_migrate_predictor_free(struct spw_predictor *order, uint32_t block)
{
    order->blocks[block].live = false;
    order->live_bytes -= order->blocks[block].bytes;
    note(order, SPW_PREDICTOR_FREE, block);
}

void spw_migrate_predictor_renew(struct spw_predictor *order)
{
    order->since = order->count;
}

/* ---- looking ahead ---- */

/* A step that was not seen since the past that is followed is none any more. */
uint64_t spw_migrate_predictor_period(const struct spw_predictor *order)
{
    uint64_t distance = distance_of(order);

    return order->step > 0 && order->step < distance && order->count - order->step_seen < distance
               ? order->step
               : distance;
}

struct spw_predictor_course spw_migrate_predictor_course(const struct spw_predictor *order)
{
    return (struct spw_predictor_course){.events = order->count,
                                         .period = distance_of(order),
                                         .since = order->since,
                                         .surprise = order->surprise};
}

/* The live block that is meant by what happened to `block`; 0 when it is not there (yet). */
static uint32_t present(const struct spw_predictor *order, uint32_t block)
{
    uint32_t heir = heir_of(order, block);
    uint32_t now = heir != 0 ? heir : block;

    return order->blocks[block].ahead != order->forecast && order->blocks[now].live ? now : 0;
}

/* Notes when a block is first used, and when it is freed. */
static void foresee_event(struct spw_predictor *order,
                          const struct spw_predictor_expected *expected)
{
    struct spw_predictor_block *b = &order->blocks[expected->block];

    if (expected->kind == SPW_PREDICTOR_USE && b->swept != order->forecast) {
        b->swept = order->forecast;
        b->next = expected->distance;
    }
    if (expected->kind == SPW_PREDICTOR_FREE && b->ended != order->forecast) {
        b->ended = order->forecast;
        b->end = expected->distance;
    }
}

void spw_migrate_predictor_foresee(struct spw_predictor *order,
                                   void (*expect)(void *cookie,
                                                  const struct spw_predictor_expected *expected),
                                   void *cookie)
{
    uint64_t distance = distance_of(order), reach = REACH * spw_migrate_predictor_period(order);
    uint64_t end = order->cursor + (reach < distance ? reach : distance);

    order->forecast++;
    for (uint64_t number = order->cursor; number < end; number++) {
        const struct spw_predictor_event *event = event_at(order, number);
        struct spw_predictor_expected expected = {.kind = event->kind,
                                                  .distance = (uint32_t)(number - order->cursor),
                                                  .bytes = order->blocks[event->block].bytes};

        if (event->kind == SPW_PREDICTOR_ALLOC) {
            order->blocks[event->block].ahead = order->forecast;
        }
        expected.block = present(order, event->block);
        if (expected.block != 0) {
            foresee_event(order, &expected);
        }
        if (event->kind != SPW_PREDICTOR_USE && expect != NULL) {
            expect(cookie, &expected);
        }
    }
}
