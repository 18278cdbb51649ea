/* Plans which chunks to move between device and host, given their predicted next uses.
 *
 * The planner walks through all future needs of room on the device, in order of time: uses of
 * chunks on the host, and allocations. Predicted frees give room. A need without room evicts the
 * chunk whose next use is farthest away (Belady's rule), if that use is later than the need. So the
 * link carries the chunks that are needed next, and no chunk is fetched that would be evicted
 * before its use. If a chunk is freed before the need, its room counts as free without a move.
 *
 * Example: a device of two chunks holds A (next use in 90 events) and B (next use in 10 events). C
 * is on the host and is used in 20 events. The plan is: A to the host, C to the device. If A were
 * used in 15 events, there would be no plan, because a fetch of C would evict a chunk that is used
 * earlier than C.
 *
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_planner_chunk {
    uint32_t index; /* the caller's number of its first granule; the other granules follow */
    uint32_t count; /* number of its granules */
    uint32_t next;  /* events until its next use; UINT32_MAX: none is predicted */
    uint32_t end;   /* events until it is freed; UINT32_MAX: not predicted */
    uint32_t rank;  /* set by the planner, the eviction order: `next` in units of grain_events */
    uint32_t age;   /* events since its last use */
    int32_t priority;
    bool host;
    bool moves; /* set by the planner: the chunk is chosen to move */
};

/* A predicted change of the free room on the device. */
struct spw_planner_need {
    uint32_t at;   /* events from now until the change */
    int64_t bytes; /* needed; negative for a free of memory that is on the device now */
};

struct spw_planner_input {
    struct spw_planner_chunk *chunks; /* sorted by index; the planner reorders them */
    size_t chunk_count;
    const struct spw_planner_need *needs; /* sorted by time */
    size_t need_count;
    int64_t room_bytes; /* free on the device now */
    int64_t kept_bytes; /* fetches leave so much of it, for what arrives before victims have left */
    uint64_t granule_bytes;
    size_t most;        /* granules to move at most, in each direction */
    bool fetch;         /* also plan moves to the device */
    uint32_t least_gap; /* a victim's next use is at least so many events after the need */
    uint32_t least_age; /* a victim's last use is at least so many events ago */
    /* Next uses within so many events count as equal. Neighbouring chunks with equal next uses are
     * evicted together, because one call remaps a run of neighbours. 0: no grouping. */
    uint32_t grain_events;
};

struct spw_planner_move {
    uint32_t index, count;
    bool to_host;
};

/* Writes at most 2 * most moves to ret_moves, the most urgent first, and returns their number.
 * *ret_at: events until the first need that the moves serve; UINT32_MAX without moves. */
size_t spw_migrate_planner_run(const struct spw_planner_input *input,
                               struct spw_planner_move *ret_moves, uint32_t *ret_at);
