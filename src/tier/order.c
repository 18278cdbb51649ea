#include "tier/order.h"

#include <stdlib.h>
#include <string.h>

enum {
    GRAM = 8,            /* events whose tokens together say where to look */
    END_BITS = 16,       /* of the table of such places */
    LEAST_EQUAL = 24,    /* events that must be equal before a place is followed */
    MOST_EQUAL = 1 << 15, /* compared at most */
    MOST_PLACES = 512,   /* looked at in one search */
    MOST_COMPARED = 1 << 17, /* events, in one search */
    MOST_SKIPPED = 32,   /* expected events that may be missing at once */
    MOST_STRIKES = 48,   /* differences, less what was as expected since */
    SEARCH_EVERY = 32,   /* events, while lost */
    NEAR_SHARE = 8       /* part of a period by which another one may differ and be the same */
};

static const uint64_t odd = 0x9e3779b97f4a7c15u;

bool spw_order_init(struct spw_order *order)
{
    memset(order, 0, sizeof(*order));
    order->events = calloc(SPW_ORDER_EVENTS, sizeof(*order->events));
    order->ends = calloc((size_t)1 << END_BITS, sizeof(*order->ends));
    order->blocks = calloc(SPW_ORDER_BLOCKS, sizeof(*order->blocks));
    order->unused = calloc(SPW_ORDER_BLOCKS, sizeof(*order->unused));
    order->block_count = 1;
    if (order->events == NULL || order->ends == NULL || order->blocks == NULL ||
        order->unused == NULL) {
        spw_order_fini(order);
        return false;
    }
    return true;
}

void spw_order_fini(struct spw_order *order)
{
    free(order->events);
    free(order->ends);
    free(order->blocks);
    free(order->unused);
    memset(order, 0, sizeof(*order));
}

static struct spw_order_event *event_at(const struct spw_order *order, uint64_t number)
{
    return &order->events[number % SPW_ORDER_EVENTS];
}

/* Whether an event is still in the ring, with one to spare for the next. */
static bool is_kept(const struct spw_order *order, uint64_t number)
{
    return order->count - number < SPW_ORDER_EVENTS - 1;
}

/* ---- following ---- */

/* The block of the event before, whose place `block` has taken. */
static void inherit(struct spw_order *order, uint32_t before, uint32_t block)
{
    if (before != block) {
        order->blocks[before].heir = block;
        order->blocks[block].twin = before;
    }
}

static uint32_t heir_of(const struct spw_order *order, uint32_t block)
{
    uint32_t heir = order->blocks[block].heir;

    return heir != 0 && order->blocks[heir].twin == block ? heir : 0;
}

/* How many events before `number` are as the ones before the next, `most` at most. */
static uint64_t count_equal(const struct spw_order *order, uint64_t number, uint64_t most)
{
    uint64_t equal = 0;

    while (equal < most && number > equal && is_kept(order, number - equal - 1) &&
           event_at(order, number - equal - 1)->token ==
               event_at(order, order->count - equal - 1)->token) {
        equal++;
    }
    return equal;
}

/* Looks for the place in the past that the present is most like. Stays where it is when there is
 * none. */
static void search(struct spw_order *order)
{
    uint64_t number = order->count - 1, place = 0, best = LEAST_EQUAL - 1, compared = 0;

    for (int i = 0; i < MOST_PLACES && compared < MOST_COMPARED; i++) {
        uint32_t before = event_at(order, number)->before;
        uint64_t equal;

        if (before == 0 || before > number || !is_kept(order, number - before)) {
            break;
        }
        number -= before;
        equal = count_equal(order, number + 1, MOST_EQUAL);
        compared += equal;
        if (equal > best) {
            best = equal;
            place = number + 1;
        }
    }
    order->wait = SEARCH_EVERY;
    if (best < LEAST_EQUAL) {
        return;
    }
    order->cursor = place;
    order->following = true;
    order->strikes = 0;
    for (uint64_t i = 1; i <= best; i++) {
        const struct spw_order_event *then = event_at(order, order->cursor - i);

        if (then->kind == SPW_ORDER_ALLOC) {
            inherit(order, then->block, event_at(order, order->count - i)->block);
        }
    }
}

/* Compares the event with what is expected, and goes on from there. False when it was not that. */
static bool follow(struct spw_order *order, const struct spw_order_event *event)
{
    for (uint64_t skipped = 0;
         skipped <= MOST_SKIPPED && order->cursor + skipped < order->count; skipped++) {
        const struct spw_order_event *then = event_at(order, order->cursor + skipped);

        if (then->token == event->token) {
            if (event->kind == SPW_ORDER_ALLOC) {
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
static void recycle(struct spw_order *order, uint32_t block)
{
    memset(&order->blocks[block], 0, sizeof(order->blocks[block]));
    order->unused[order->unused_count++] = block;
}

/* Where events end as the last ones do. */
static uint64_t *end_of(struct spw_order *order)
{
    uint64_t hash = 0;

    for (uint64_t i = 1; i <= GRAM && i <= order->count; i++) {
        hash = (hash ^ event_at(order, order->count - i)->token) * odd;
        hash ^= hash >> 31;
    }
    return &order->ends[(hash * odd) >> (64 - END_BITS)];
}

/* Whether what is followed is what was followed before. */
static void compare_periods(struct spw_order *order)
{
    uint64_t period = spw_order_period(order), before = order->steady_period;
    uint64_t difference = period > before ? period - before : before - period;

    if (period == 0 || before == 0 || difference > before / NEAR_SHARE) {
        order->steady_period = period;
        order->since = order->count;
    }
}

static void note(struct spw_order *order, enum spw_order_kind kind, uint32_t block)
{
    struct spw_order_block *b = &order->blocks[block];
    struct spw_order_event event = {
        .token = b->token * 4 + (uint32_t)kind, .block = block, .kind = (uint8_t)kind};
    struct spw_order_event *place = event_at(order, order->count);
    bool expected = true;
    uint64_t *end;

    if (order->count >= SPW_ORDER_EVENTS && place->kind == SPW_ORDER_FREE) {
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
    }
    compare_periods(order);
}

uint32_t spw_order_adopt(struct spw_order *order, uint64_t bytes, uint32_t site, uint64_t age)
{
    uint64_t hash = ((bytes + 1) * odd) ^ site;
    uint32_t number;

    if (order->unused_count > 0) {
        number = order->unused[--order->unused_count];
    } else if (order->block_count < SPW_ORDER_BLOCKS) {
        number = order->block_count++;
    } else {
        return 0;
    }
    hash = (hash ^ hash >> 29) * odd;
    order->blocks[number] = (struct spw_order_block){.bytes = bytes,
                                                     .last = (int64_t)(order->count - age),
                                                     .token = (uint32_t)(hash >> 32),
                                                     .live = true};
    return number;
}

uint32_t spw_order_alloc(struct spw_order *order, uint64_t bytes, uint32_t site)
{
    uint32_t block = spw_order_adopt(order, bytes, site, 0);

    if (block != 0) {
        note(order, SPW_ORDER_ALLOC, block);
    }
    return block;
}

void spw_order_use(struct spw_order *order, uint32_t block)
{
    const struct spw_order_event *last = event_at(order, order->count - 1);

    if (order->count == 0 || last->block != block || last->kind != SPW_ORDER_USE) {
        note(order, SPW_ORDER_USE, block);
    } else {
        order->blocks[block].last = (int64_t)order->count - 1;
    }
}

void spw_order_free(struct spw_order *order, uint32_t block)
{
    order->blocks[block].live = false;
    note(order, SPW_ORDER_FREE, block);
}

void spw_order_renew(struct spw_order *order)
{
    order->since = order->count;
}

/* ---- looking ahead ---- */

uint64_t spw_order_period(const struct spw_order *order)
{
    return order->following ? order->count - order->cursor : 0;
}

struct spw_order_course spw_order_course(const struct spw_order *order)
{
    return (struct spw_order_course){.events = order->count,
                                     .period = spw_order_period(order),
                                     .since = order->since,
                                     .surprise = order->surprise};
}

/* The live block that is meant by what happened to `block`; 0 when it is not there (yet). */
static uint32_t present(const struct spw_order *order, uint32_t block)
{
    uint32_t heir = heir_of(order, block);
    uint32_t now = heir != 0 ? heir : block;

    return order->blocks[block].ahead != order->forecast && order->blocks[now].live ? now : 0;
}

void spw_order_foresee(struct spw_order *order,
                       void (*expect)(void *cookie, const struct spw_order_expected *expected),
                       void *cookie)
{
    order->forecast++;
    for (uint64_t number = order->cursor; order->following && number < order->count; number++) {
        const struct spw_order_event *event = event_at(order, number);
        struct spw_order_expected expected = {.kind = event->kind,
                                              .distance = (uint32_t)(number - order->cursor),
                                              .bytes = order->blocks[event->block].bytes};

        if (event->kind == SPW_ORDER_ALLOC) {
            order->blocks[event->block].ahead = order->forecast;
        }
        expected.block = present(order, event->block);
        if (event->kind == SPW_ORDER_USE) {
            struct spw_order_block *b = &order->blocks[expected.block];

            if (expected.block != 0 && b->swept != order->forecast) {
                b->swept = order->forecast;
                b->next = expected.distance;
            }
        } else if (expect != NULL) {
            expect(cookie, &expected);
        }
    }
}
