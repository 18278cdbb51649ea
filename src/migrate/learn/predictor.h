/* Predicts the next allocations, uses and frees of a program from its past ones.
 *
 * Training programs repeat themselves. The predictor keeps a history of events. An event is an
 * allocation, a use or a free of a block, and has a token: a hash of its kind and of the block's
 * size and call site. Events with the same token count as equal.
 *
 * Prediction works like a text editor's completion. When the last events have occurred before, a
 * cursor points to the event that followed them then, and predicts that event. Each new event is
 * compared with the event at the cursor. If they match, the cursor advances. It skips a few missing
 * events, and is set again ("resync") after a misprediction. Of several earlier occurrences the
 * newest is taken. Example, with one letter a token:
 *
 *     history   A B C D  A B C D  A B
 *     cursor             ^ was here, now at the second C: predicts C, then D, then A, B
 *
 * Blocks get new numbers in each repetition. When an allocation matches the one at the cursor, the
 * new block is linked as the successor of the old one, so a predicted use of the old block is
 * reported as a use of its successor. If the old block is still used where it was used before, it
 * has no successor.
 *
 * The distance from the cursor to the present may hold several training steps, for example all
 * steps between two evaluations. The period is the length of one step. Unlike a layer, a step uses
 * the same blocks as the step before, and half of the live memory.
 *
 * A program can also mark the beginnings of its steps. Then no step is detected: the period is the
 * length of the marked step that the cursor follows. At a mark the cursor goes to the beginning of
 * an earlier step. After a misprediction it goes to an earlier step that was equal up to the same
 * place. So a step is recognised by its first events, without a long match, and never confused with
 * a layer. Example with three kinds of steps, `|` for a mark:
 *
 *     history   |A B C D |A X Y |A B C D |A X
 *     cursor                ^ follows the second step: predicts Y
 *
 * Pure: no clock, no addresses. A wrong prediction costs time and never correctness. No locking:
 * the caller holds the access log's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum spw_predictor_kind { SPW_PREDICTOR_ALLOC, SPW_PREDICTOR_USE, SPW_PREDICTOR_FREE };

/* A distance in events: no such event is predicted. */
#define SPW_NEVER UINT32_MAX

/* Capacities: block numbers, events of history, n-grams looked up, and marked steps. */
enum {
    SPW_PREDICTOR_BLOCKS = 1 << 17,
    SPW_PREDICTOR_EVENTS = 1 << 19,
    SPW_PREDICTOR_NGRAMS = 1 << 16,
    SPW_PREDICTOR_MARKS = 64
};

struct spw_predictor_block {
    uint64_t bytes;
    int64_t last;   /* number of the last event of the block; may be negative */
    uint32_t token; /* hash of size and call site */
    uint32_t site;
    uint32_t predecessor;    /* the block of the same role in the previous repetition */
    uint32_t successor;      /* the block of the next repetition; 0 in both: none */
    uint32_t next_use;       /* events until its next use ... */
    uint32_t next_use_pass;  /* ... according to this forecast */
    uint32_t next_free;      /* events until its free ... */
    uint32_t next_free_pass; /* ... according to this forecast */
    uint32_t realloc_pass;   /* the forecast that predicted a successor to be allocated */
    bool live;
    bool untracked; /* no event names it */
};

struct spw_predictor_event {
    uint32_t token;
    uint32_t block;
    uint32_t back; /* distance to the last end of the same n-gram; 0: none */
    uint8_t kind;  /* enum spw_predictor_kind */
};

struct spw_predictor {
    struct spw_predictor_event *events; /* ring of the newest ones */
    uint64_t *ngrams;                   /* hash of the last tokens -> newest event number + 1 */
    struct spw_predictor_block *blocks; /* by number; number 0 is never used */
    uint32_t *unused;                   /* stack of free block numbers */
    uint32_t block_count, unused_count;
    uint64_t ngram;                      /* hash of the newest tokens ... */
    uint64_t ngram_oldest;               /* ... and the factor of the token that leaves it */
    uint64_t count;                      /* events so far, and the number of the next event */
    uint64_t cursor;                     /* the past event that predicts the next one */
    bool following;                      /* the cursor is valid */
    bool confirmed;                      /* the events from the cursor to now have come twice */
    uint32_t mispredict_score;           /* plus 2 for a misprediction, minus 1 for a hit */
    uint32_t forecast;                   /* number of the last forecast */
    uint64_t live_bytes;                 /* of all live blocks */
    uint64_t step;                       /* length of a step; 0: not known */
    uint64_t step_seen;                  /* when the cursor was last several steps away */
    uint64_t measure_at;                 /* event number of the next measurement of the step */
    uint64_t hits, misses;               /* events that matched the cursor, and that did not */
    uint64_t marks[SPW_PREDICTOR_MARKS]; /* ring: event numbers of the marks */
    uint64_t mark_count;                 /* marks so far */
    uint64_t last_followed;              /* events so far when `step` was last followed */
};

/* Allocates about 24 MiB, touched only as it fills. False when the process has no memory. */
bool spw_migrate_predictor_init(struct spw_predictor *predictor);
void spw_migrate_predictor_fini(struct spw_predictor *predictor);

/* Appends an allocation of `bytes` by call site `site`. Returns the number of the new block, or 0
 * without a free number. */
uint32_t spw_migrate_predictor_alloc(struct spw_predictor *predictor, uint64_t bytes,
                                     uint32_t site);

/* Adds and removes a live block that no event will name. */
uint32_t spw_migrate_predictor_add_untracked(struct spw_predictor *predictor, uint64_t bytes,
                                             uint32_t site);
void spw_migrate_predictor_end_untracked(struct spw_predictor *predictor, uint32_t block);

/* Appends a use. Several uses of one block in a row count as one event. */
void spw_migrate_predictor_use(struct spw_predictor *predictor, uint32_t block);

/* Appends a free. The number stays reserved while the history names it. */
void spw_migrate_predictor_free(struct spw_predictor *predictor, uint32_t block);

/* Marks the beginning of a step. Two marks without an event between them are one. */
void spw_migrate_predictor_mark_step(struct spw_predictor *predictor);

/* Adds a live block that was allocated before recording began, without an event. Its last use
 * counts as `age` events ago. Returns its number, or 0 without a free number. */
uint32_t spw_migrate_predictor_add_block(struct spw_predictor *predictor, uint64_t bytes,
                                         uint32_t site, uint64_t age);

/* The length of a step in events; 0 while nothing is predicted. */
uint64_t spw_migrate_predictor_period(const struct spw_predictor *predictor);

/* An event that is predicted. */
struct spw_prediction {
    enum spw_predictor_kind kind;
    uint32_t distance; /* events from now */
    uint32_t block;    /* 0: a block to be allocated */
    uint64_t bytes;
};

/* Predicts one period ahead. Calls `expect`, if not NULL, for each predicted allocation
 * and free, in order. Afterwards the functions below hold for every live block. */
void spw_migrate_predictor_forecast(struct spw_predictor *predictor,
                                    void (*expect)(void *cookie,
                                                   const struct spw_prediction *prediction),
                                    void *cookie);

/* Events until the block is used according to the last forecast, or SPW_NEVER. */
static inline uint32_t spw_migrate_predictor_next_use(const struct spw_predictor *predictor,
                                                      uint32_t block)
{
    const struct spw_predictor_block *b = &predictor->blocks[block];

    return b->next_use_pass == predictor->forecast ? b->next_use : SPW_NEVER;
}

/* Events until the block is freed according to the last forecast, or SPW_NEVER. */
static inline uint32_t spw_migrate_predictor_next_free(const struct spw_predictor *predictor,
                                                       uint32_t block)
{
    const struct spw_predictor_block *b = &predictor->blocks[block];

    return b->next_free_pass == predictor->forecast ? b->next_free : SPW_NEVER;
}

/* Events since the block's last event. */
static inline uint64_t spw_migrate_predictor_age(const struct spw_predictor *predictor,
                                                 uint32_t block)
{
    return (uint64_t)((int64_t)predictor->count - predictor->blocks[block].last);
}
