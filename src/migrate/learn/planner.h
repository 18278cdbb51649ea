/* Plans which chunks to swap between device and host, given their predicted next uses.
 *
 * The planner walks through all future needs of room on the device, in order of time: uses of
 * chunks on the host, and allocations. Predicted frees give room. A need without room evicts the
 * chunk whose next use is farthest away (Belady's rule), if that use is later than the need. So the
 * link carries the chunks that are needed next, and no chunk is fetched that would be evicted
 * before its use. A chunk that is freed before the need gives its room without moving.
 *
 * Example: a device of two chunks holds A (next use in 90 events) and B (in 10); C is on the host
 * and is used in 20. The plan is: A to the host, C to the device. If A were used in 15, there would
 * be no plan, because fetching C would only make another chunk missing.
 *
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_planner_chunk {
    uint32_t index; /* the caller's number of its first granule; neighbours follow */
    uint32_t count; /* of its granules */
    uint32_t next;  /* events until its next use; UINT32_MAX: none is predicted */
    uint32_t end;   /* events until it is freed; UINT32_MAX: not predicted */
    uint32_t rank;  /* eviction order, set by the planner: `next` in units of grain_events */
    uint32_t age;   /* events since its last use */
    int32_t priority;
    bool host;
    bool moves; /* chosen; set by the planner */
};

/* A predicted change of the free room on the device. */
struct spw_planner_need {
    uint32_t at;   /* events from now */
    int64_t bytes; /* negative for a free of memory that is on the device now */
};

struct spw_planner_input {
    struct spw_planner_chunk *chunks; /* sorted by index; the planner reorders them */
    size_t chunk_count;
    const struct spw_planner_need *needs; /* sorted by time */
    size_t need_count;
    int64_t room_bytes; /* free on the device now */
    uint64_t granule_bytes;
    size_t most;        /* granules to move at most, in each direction */
    bool fetch;         /* also plan moves to the device */
    uint32_t least_gap; /* a victim's next use is at least so many events after the need */
    uint32_t least_age; /* a victim's last use is at least so many events ago */
    /* Next uses within so many events count as equal. Equal neighbouring chunks are evicted
     * together, since one call remaps a run of neighbours. 0: no grouping. */
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
