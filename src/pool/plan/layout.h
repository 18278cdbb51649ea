/* Addresses chosen ahead, for a program that repeats itself. It does not know requests, and whether
 * its addresses are taken.
 *
 *   repetition  the period of a sequence
 *   packing     addresses for blocks whose lifetimes are known
 *   layout      records the blocks, makes the plan and follows it */

/* Layout: chooses addresses for the large blocks of a step that repeats, so that they fit into the
 * memory of the pool.
 *
 * A pool with little memory steals chunks from free addresses. A program that repeats itself causes
 * the same steals in every step. After the first steal, the pool therefore records the sizes,
 * allocations and frees of large blocks. When the record repeats (repetition.h), the blocks of one
 * period are packed (packing.h) around the blocks that stay. The plan begins at the point with the
 * fewest live bytes. From there, each allocation that follows the record gets its planned address.
 * The granules of the plan are stolen last. They get their chunks in the first period, and later
 * periods make no memory call.
 *
 * An allocation is served without the plan if it does not match the record, or if its addresses are
 * not free. If the program no longer follows a plan, the plan is dropped. There are no plans while
 * memory is on the host.
 *
 * Locking: the caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_extent;
struct spw_space;

struct spw_layout_record;
struct spw_layout_place;

/* The most blocks that are recorded. A longer period is not found. */
enum { SPW_LAYOUT_RECORDS = 1 << 17 };

struct spw_layout {
    struct spw_space *space;
    struct spw_layout_record *records; /* a ring; NULL: nothing is recorded */
    uint32_t *by_id;                   /* index in the ring, by id of the block */
    uint64_t count;                    /* number of blocks recorded so far */
    uint64_t since;                    /* blocks before this number belong to an earlier part of the
                                          program */
    uint32_t events;                   /* number of allocations and frees so far */
    int64_t live;                      /* bytes of recorded blocks, minus bytes of all frees */
    bool wanted;                       /* memory was stolen since the last search */
    uint64_t search_at;                /* value of `count` at the next search for a plan */
    struct spw_layout_place *places;   /* the plan; NULL: none */
    size_t period, next;               /* number of places, and index of the place that is expected
                                          next */
    size_t begin;                      /* index of the place where following the plan begins */
    bool followed;                     /* `begin` was reached */
    size_t strays;                     /* deviations of the program from the plan: rises at each
                                          one, and falls again while the program follows the plan */
};

/* Called after a steal. Starts recording, and allows a search for a plan soon. */
void spw_pool_layout_want(struct spw_layout *layout);

/* Frees the records and drops the plan. */
void spw_pool_layout_fini(struct spw_layout *layout);

/* The slow paths of the functions below. */
void spw_pool_layout_record(struct spw_layout *layout, const struct spw_extent *block);
void spw_pool_layout_record_free(struct spw_layout *layout, const struct spw_extent *block);

/* Called before the allocation of a large block that may be anywhere on the device. Searches for a
 * plan, if it is time. Returns true if the plan has an address for the block. */
bool spw_pool_layout_next(struct spw_layout *layout, uint64_t bytes, uint64_t *ret_address);
