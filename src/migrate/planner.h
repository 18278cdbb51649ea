/* The plan: which granules should change places, when it is known, or guessed, what is used next.
 *
 * Walks through what will need room on the device, nearest first: granules on the host that are
 * used, and new blocks; frees give room. Whatever finds no room takes the place of the granule that
 * is used last of all, as long as that is later than the need itself: to fetch at once whatever is
 * needed next, for what is needed last, keeps the link busy, and never fetches what would be thrown
 * out before it is used. What is freed before the need gives its room in any case, and need not go.
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_planner_granule {
    uint32_t index; /* the caller's */
    uint32_t next;  /* events until it is used; UINT32_MAX: not known to be */
    uint32_t end;   /* events until it is freed; UINT32_MAX: not known to be */
    uint32_t rank;  /* `next` in steps of `grain`, or sooner: set by the answer */
    uint32_t age;   /* events since it was used */
    int32_t priority;
    bool host;
    bool moves; /* it was chosen: set by the answer */
};

/* A change of the room on the device that is to come. */
struct spw_planner_need {
    uint32_t at;   /* events from now */
    int64_t bytes; /* negative: given back by what is on the device now */
};

struct spw_planner_question {
    struct spw_planner_granule *granules; /* in order of index; the answer changes it */
    size_t granule_count;
    const struct spw_planner_need *needs; /* nearest first */
    size_t need_count;
    int64_t room_bytes; /* free on the device now */
    uint64_t granule_bytes;
    size_t most;        /* granules to move either way */
    bool fetch;         /* also to the device */
    uint32_t later;     /* a granule goes for a need only if it is used so many events after it */
    uint32_t grain;     /* what is used within so many events is as good: in order of address, and
                         * what would go alone later than what goes with its neighbours; 0: no */
    uint32_t least_age; /* and if it was not used in so many */
};

struct spw_planner_move {
    uint32_t index;
    bool to_host;
};

/* Fills in at most twice `most` moves, the most important ones first. *ret_at: when the first of
 * what they serve is needed. */
size_t spw_migrate_planner_answer(const struct spw_planner_question *question,
                                  struct spw_planner_move *ret_moves, uint32_t *ret_at);
