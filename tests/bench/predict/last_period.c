/* The simplest repetition: the place in the past is the newest one at which the last few events
 * came in the same order, and what followed there is expected. At the first event that differs the
 * place is given up, and looked up again. No event may be missing. Fewer events than LOOKED_UP may
 * be a layer; more did no better in the benchmark. */
#include "predict/predictions.h"

#include <stdbool.h>
#include <stdlib.h>

enum { EVENTS = 1 << 20, LOOKED_UP = 64, TABLE_BITS = 16 };

enum kind { ALLOC, USE, FREE };

struct event {
    uint64_t token; /* of the kind, and of the block's size and call site */
    uint32_t block;
    enum kind kind;
};

struct repeated {
    struct event events[EVENTS];
    uint64_t newest[1 << TABLE_BITS]; /* hash of the last events -> number of the next event */
    uint64_t tokens[PREDICT_BLOCKS];
    uint32_t successors[PREDICT_BLOCKS]; /* the block that has the role in the next period */
    bool live[PREDICT_BLOCKS];
    uint32_t next[PREDICT_BLOCKS];      /* events until the next use ... */
    uint64_t next_pass[PREDICT_BLOCKS]; /* ... by this forecast */
    uint64_t count, cursor, pass;
    bool following;
};

static uint64_t mix(uint64_t hash)
{
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static void *open(void)
{
    return calloc(1, sizeof(struct repeated));
}

/* Where the last events came in this order before; now this is the newest place. */
static uint64_t look_up(struct repeated *self)
{
    uint64_t hash = 0, before;
    uint64_t *newest;

    for (uint64_t i = 1; i <= LOOKED_UP && i <= self->count; i++) {
        hash = mix(hash ^ self->events[self->count - i].token);
    }
    newest = &self->newest[hash >> (64 - TABLE_BITS)];
    before = *newest;
    *newest = self->count;
    return before;
}

static void link_blocks(struct repeated *self, const struct event *then, const struct event *now)
{
    if (now->kind == ALLOC && then->block != now->block) {
        self->successors[then->block] = now->block;
    }
}

/* Follows from a place, and links the blocks of the equal events before it. */
static void follow_from(struct repeated *self, uint64_t place)
{
    self->cursor = place;
    self->following = place > 0;
    for (uint64_t i = 1; i <= place && i <= self->count - place; i++) {
        const struct event *then = &self->events[place - i], *now = &self->events[self->count - i];

        if (then->token != now->token) {
            break;
        }
        link_blocks(self, then, now);
    }
}

static void append(struct repeated *self, enum kind kind, uint32_t block)
{
    struct event *event = &self->events[self->count];
    uint64_t place;

    if (self->count + 1 == EVENTS) {
        return;
    }
    *event = (struct event){mix(self->tokens[block] ^ (uint64_t)kind), block, kind};
    self->following = self->following && self->events[self->cursor].token == event->token;
    if (self->following) {
        link_blocks(self, &self->events[self->cursor++], event);
    }
    self->count++;
    place = look_up(self);
    if (!self->following) {
        follow_from(self, place);
    }
}

static void live(void *cookie, uint32_t block, uint64_t bytes, uint32_t site)
{
    struct repeated *self = cookie;

    self->tokens[block] = mix(mix(bytes) ^ site) << 2;
    self->live[block] = true;
}

static void alloc(void *cookie, uint32_t block, uint64_t bytes, uint32_t site)
{
    live(cookie, block, bytes, site);
    append(cookie, ALLOC, block);
}

static void use(void *cookie, uint32_t block)
{
    append(cookie, USE, block);
}

static void release(void *cookie, uint32_t block)
{
    struct repeated *self = cookie;

    self->live[block] = false;
    append(cookie, FREE, block);
}

static void step(void *cookie)
{
}

static void forecast(void *cookie)
{
    struct repeated *self = cookie;

    self->pass++;
    for (uint64_t i = self->cursor; self->following && i < self->count; i++) {
        const struct event *event = &self->events[i];
        uint32_t block = event->block;

        if (self->successors[block] != 0) {
            block = self->successors[block];
        }
        if (event->kind == USE && self->live[block] && self->next_pass[block] != self->pass) {
            self->next_pass[block] = self->pass;
            self->next[block] = (uint32_t)(i - self->cursor);
        }
    }
}

static uint32_t next_use(void *cookie, uint32_t block)
{
    const struct repeated *self = cookie;

    return self->next_pass[block] == self->pass ? self->next[block] : PREDICT_NEVER;
}

const struct predictions predict_last_period = {
    .name = "last period",
    .open = open,
    .close = free,
    .live = live,
    .alloc = alloc,
    .use = use,
    .free = release,
    .step = step,
    .forecast = forecast,
    .next_use = next_use,
};
