/* Host memory for blocks, and files in place of it. It does not know migrations.
 *
 *   host_tier     probes if host memory can extend the device; reports the result
 *   swap          moves memory to a file while the program is paused
 *   swap_file     the file for swapping
 *
 * The host tier of one device: is host memory usable as an extension of the device, and how?
 *
 * The driver is probed at the first memory shortage, or before a capture if a shortage is near,
 * because a capture forbids probing. There are three outcomes: the device can map chunks of host
 * memory, which migrate; it can use only page-locked host memory, which never migrates; or it can
 * use no host memory. One message reports the outcome.
 *
 * No locking: the caller holds the lock of struct spw_migrate, except in announce. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "common/host_bound.h"
#include "pool/pool.h"

enum spw_host_tier_state { SPW_HOST_TIER_UNKNOWN, SPW_HOST_TIER_OPEN, SPW_HOST_TIER_UNUSABLE };

struct spw_host_tier {
    struct spw_pool *pool;
    int ordinal;
    struct spw_host_limit limit; /* most host memory to use */
    struct spw_counters *counters;
    struct spw_host_limit (*room)(void); /* bytes that may be taken now; NULL: no limit. Reads
                                            files */
    enum spw_host_bound (*wall_of)(uint64_t wall_bytes); /* the limit behind a wall of that many
                                                            bytes; NULL: not known */
    uint64_t asked_ns;                                   /* time of the last call of `room` */
    bool reported_short;        /* the shortage of host memory was reported */
    uint64_t refusals;          /* host_refusals when the wall was last looked for */
    uint64_t wall_ns;           /* time when the wall was found; 0: there is none */
    struct spw_host_limit wall; /* page-locked memory, of the program too, when the driver refused
                                   more */
    enum spw_host_tier_state state;
    bool can_migrate;      /* allocated memory can move to the host and back */
    bool pins;             /* only page-locked memory is available */
    bool needed;           /* there was a memory shortage */
    enum spw_err refused;  /* why the host is unusable */
    atomic_flag announced; /* the first spill was reported */
};

/* Probes the host, unless its state is known or a capture is open. */
void spw_migrate_host_tier_probe(struct spw_host_tier *host);

/* Called at a memory shortage. Probes the host, and reports once what fails. True when host memory
 * is usable. */
bool spw_migrate_host_tier_open(struct spw_host_tier *host);

/* Adapts the pool's budget to the memory left in the machine and its control groups, and to the
 * page-locked memory that the driver refused to exceed, at most every 20 ms, and after a refusal.
 * Called before a batch of moves. Reports once if less memory than the budget is left. */
void spw_migrate_host_tier_refresh(struct spw_host_tier *host);

/* Reports, once for the device, that an allocation of `bytes` at `site` brought `host_bytes` to the
 * host. They are bytes of older blocks if `moved`, otherwise of the new block. Any thread may call
 * it. */
void spw_migrate_host_tier_announce(struct spw_host_tier *host, uint64_t bytes, uint64_t host_bytes,
                                    bool moved, uint32_t site,
                                    void (*describe)(uint32_t site, char *text, size_t capacity));
