/* The order of use, learned: what a program will do next, told from what it did before.
 *
 * Training repeats itself. Allocations, uses and frees of blocks are noted as they come, each with
 * a token that like events of like blocks share; where the last events have occurred before, a
 * cursor follows what came after them then, and skips over small differences; at each of them a
 * place is taken that is like the present for longer, if there is one. The longest equal past wins,
 * so that a layer that follows its like is not taken for a step that follows a step. What lies
 * between the cursor and now is expected to come again: a block that lives on from it is itself
 * meant; of one that was allocated in it, the heir, which is the block that was allocated in its
 * place this time.
 *
 * That is the period, unless it holds steps that follow one another, as what lies between two
 * evaluations does: then a step is. It is told from a layer by its blocks: a step uses those that
 * the step before it used, where they are still there, and uses most memory there is. Where the
 * past that is like the present for longest has not itself come twice, the nearest step is followed
 * rather than it.
 *
 * Pure: no clock, no addresses. Wrong predictions cost time, nothing else. Caller locks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum spw_predictor_kind { SPW_PREDICTOR_ALLOC, SPW_PREDICTOR_USE, SPW_PREDICTOR_FREE };

#define SPW_PREDICTOR_NEVER UINT32_MAX

struct spw_predictor_block {
    uint64_t bytes;
    int64_t last;   /* the event it was last seen in; negative: before the first */
    uint32_t token; /* what it has in common with its likes */
    uint32_t twin, heir;
    uint32_t next;   /* events from now until it is used; see spw_migrate_predictor_foresee */
    uint32_t swept;  /* the forecast in which `next` was set */
    uint32_t end;    /* events from now until it is freed */
    uint32_t ended;  /* the forecast in which `end` was set */
    uint32_t ahead;  /* the forecast in which its like is allocated anew */
    uint32_t summed; /* the last sum that its bytes are in */
    bool live;
};

struct spw_predictor_event {
    uint32_t token;
    uint32_t block;
    uint32_t before; /* events back to the last one that ended the same way; 0: none */
    uint8_t kind;    /* enum spw_predictor_kind */
};

struct spw_predictor {
    struct spw_predictor_event *events; /* a ring */
    uint64_t *ends; /* by hash of the last tokens: the newest event, with 1 added */
    struct spw_predictor_block *blocks; /* number 0 is none */
    uint32_t *unused;
    uint32_t block_count, unused_count;
    uint64_t count;  /* events so far: the next one's number */
    uint64_t cursor; /* the event that is expected next happened as this one */
    bool following;  /* the cursor means something */
    bool twice;      /* what lies between it and now is known to have come twice */
    uint32_t strikes, wait;
    uint32_t forecast, sum;
    uint64_t live_bytes;      /* of all blocks that are there */
    uint64_t step, step_seen; /* the newest step's events, and the event after it; 0: none */
    uint64_t measure_at;      /* the event at which it is looked again how long a step is */
    uint64_t hits, misses;    /* events that were expected, and that were not, while following */
    uint64_t steady_period, since, surprise; /* see struct spw_predictor_course */
    uint64_t followed; /* the newest event not in such a while, with 1 added */
};

/* The number of blocks it knows at most, and of events. */
enum { SPW_PREDICTOR_BLOCKS = 1 << 17, SPW_PREDICTOR_EVENTS = 1 << 19 };

/* False when the process has no memory. */
bool spw_migrate_predictor_init(struct spw_predictor *order);
void spw_migrate_predictor_fini(struct spw_predictor *order);

/* Notes an event. The first returns the block's number; 0 when there are too many of them. */
uint32_t spw_migrate_predictor_alloc(struct spw_predictor *order, uint64_t bytes, uint32_t site);
void spw_migrate_predictor_use(struct spw_predictor *order, uint32_t block);
void spw_migrate_predictor_free(struct spw_predictor *order, uint32_t block);

/* Something is done that never was done before, though it may look the same: that the same order is
 * followed counts from here. */
void spw_migrate_predictor_renew(struct spw_predictor *order);

/* A block that is known without having been seen to be allocated, `age` events ago. */
uint32_t spw_migrate_predictor_adopt(struct spw_predictor *order, uint64_t bytes, uint32_t site,
                                     uint64_t age);

/* The length of the period in events: of a step, where one is found in what lies between the past
 * that is followed and now, else of all of that. 0: nothing is expected. */
uint64_t spw_migrate_predictor_period(const struct spw_predictor *order);

/* How the past is followed. */
struct spw_predictor_course {
    uint64_t events;   /* so far */
    uint64_t period;   /* from the past that is followed until now: in events; 0: none is */
    uint64_t since;    /* the event since which that period is followed, or nearly that, or a few
                        * times that, or a fraction, but for short whiles */
    uint64_t surprise; /* the newest event that was not as expected, or in such a while, or while
                        * nothing was followed, with 1 added; 0: none */
};

/* How it is followed at present. */
struct spw_predictor_course spw_migrate_predictor_course(const struct spw_predictor *order);

/* An event that is to come. */
struct spw_predictor_expected {
    enum spw_predictor_kind kind;
    uint32_t distance; /* events from now */
    uint32_t block;    /* 0: of a block that is not there yet */
    uint64_t bytes;
};

/* Looks ahead over what lies between the past that is followed and now, but over a few periods at
 * most, and tells `expect`, if not NULL, of every allocation and free in order. Afterwards
 * spw_migrate_predictor_next and spw_migrate_predictor_end answer for every live block. */
void spw_migrate_predictor_foresee(struct spw_predictor *order,
                                   void (*expect)(void *cookie,
                                                  const struct spw_predictor_expected *expected),
                                   void *cookie);

/* By the last forecast: events until a block is used; SPW_PREDICTOR_NEVER: it saw none. */
static inline uint32_t spw_migrate_predictor_next(const struct spw_predictor *order, uint32_t block)
{
    const struct spw_predictor_block *b = &order->blocks[block];

    return b->swept == order->forecast ? b->next : SPW_PREDICTOR_NEVER;
}

/* By the last forecast: events until a block is freed; SPW_PREDICTOR_NEVER: it saw that not. */
static inline uint32_t spw_migrate_predictor_end(const struct spw_predictor *order, uint32_t block)
{
    const struct spw_predictor_block *b = &order->blocks[block];

    return b->ended == order->forecast ? b->end : SPW_PREDICTOR_NEVER;
}

/* Events since a block was last seen. */
static inline uint64_t spw_migrate_predictor_age(const struct spw_predictor *order, uint32_t block)
{
    return (uint64_t)((int64_t)order->count - order->blocks[block].last);
}
