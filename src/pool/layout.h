/* Layout: addresses for the large blocks of a step that repeats, chosen so that they need no more
 * memory than there is.
 *
 * A pool that has little memory moves chunks to where they are wanted (steals), and a program that
 * repeats itself causes the same steals in every step. Once memory had to be stolen, the large
 * blocks are recorded: sizes, and when they are allocated and freed. When the record repeats
 * (repetition.h), the blocks of one period are packed (packing.h) around those that stay, and each
 * allocation that follows the record gets its planned address, from the point on at which the
 * fewest blocks are live. The granules of the plan are stolen last, so that after a period in which
 * they get their chunks no memory call is made.
 *
 * An allocation that does not fit the record, or whose addresses are taken, is served as without a
 * plan. A plan that the program has left is dropped. While memory is on the host there are no
 * plans.
 *
 * Locking: the caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_pool;
struct spw_extent;

struct spw_layout_record;
struct spw_layout_place;

/* Blocks that are remembered; a longer period is not found. */
enum { SPW_LAYOUT_RECORDS = 1 << 17 };

struct spw_layout {
    struct spw_layout_record *records; /* a ring; NULL: nothing is recorded */
    uint32_t *by_id;                   /* places in the ring, by the numbers of blocks */
    uint64_t count;                    /* blocks recorded so far */
    uint64_t since;                    /* blocks before it are of an earlier part of the program */
    uint32_t events;                   /* allocations and frees so far */
    int64_t live;                      /* bytes of the recorded ones, less those of all frees */
    bool wanted;                       /* memory was stolen since the last search */
    uint64_t search_at;                /* count at which a plan is looked for again */
    struct spw_layout_place *places;   /* the plan; NULL: none */
    size_t period, next;               /* places, and the one that is expected next */
    size_t begin;                      /* the place from which on the plan is followed first */
    bool followed;                     /* that place was reached */
    size_t strays;                     /* how badly the program follows it; 0: well */
};

/* Memory had to be stolen: starts recording, and looks for a plan soon. */
void spw_pool_layout_want(struct spw_pool *pool);

/* Frees the records and drops the plan. */
void spw_pool_layout_fini(struct spw_pool *pool);

/* The slow paths of the functions below. */
void spw_pool_layout_record(struct spw_pool *pool, const struct spw_extent *block);
void spw_pool_layout_record_free(struct spw_pool *pool, const struct spw_extent *block);

/* Before an allocation of a large block that may be anywhere on the device: makes a plan if it is
 * time. True with the address at which the block is to be. */
bool spw_pool_layout_next(struct spw_pool *pool, uint64_t bytes, uint64_t *ret_address);
