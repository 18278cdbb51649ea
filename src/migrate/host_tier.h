/* The host tier of one device: is host memory usable as an extension of the device, and how?
 *
 * Nothing is asked of the driver before the first memory shortage, or before the first capture,
 * during which nothing can be probed. There are three outcomes: chunks of host memory can be mapped
 * and memory can migrate; only page-locked memory can be placed, which never migrates; or nothing.
 * The user is told once.
 *
 * No locking: the caller holds the lock of struct spw_migrate, except in announce. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "pool/pool.h"

enum spw_host_tier_state { SPW_HOST_TIER_UNKNOWN, SPW_HOST_TIER_OPEN, SPW_HOST_TIER_UNUSABLE };

struct spw_host_tier {
    struct spw_pool *pool;
    int ordinal;
    uint64_t limit_bytes; /* most host memory to use */
    const struct spw_counters *counters;
    uint64_t (*room)(void); /* how many more bytes may be taken now; NULL: any */
    uint64_t asked_ns;      /* when it was asked last */
    bool told_short;        /* the user was told that the machine is short of memory */
    enum spw_host_tier_state state;
    bool can_migrate;      /* memory can move both ways, not only be placed */
    bool pins;             /* only page-locked memory can be had */
    bool needed;           /* there was a memory shortage */
    enum spw_err refused;  /* why the host is unusable */
    atomic_flag announced; /* the user was told of the first spill */
};

/* Finds out what the host is good for, unless that is known or a capture is open. */
void spw_migrate_host_tier_probe(struct spw_host_tier *host);

/* At a memory shortage: probes, and tells the user once what does not work. True when host memory
 * is usable. */
bool spw_migrate_host_tier_open(struct spw_host_tier *host);

/* Adapts the pool's budget to the memory that the machine and its control groups have left now, if
 * the last time is a while ago: to be called before a batch of moves. The user is told once when
 * the machine has less than the budget. */
void spw_migrate_host_tier_refresh(struct spw_host_tier *host);

/* Tells the user, once in the process's life, that an allocation of `bytes` by `who` brought
 * `host_bytes` to the host: of older blocks if `moved`, else of its own. Any thread. */
void spw_migrate_host_tier_announce(struct spw_host_tier *host, uint64_t bytes, uint64_t host_bytes,
                                    bool moved, uint32_t site,
                                    void (*describe)(uint32_t site, char *text, size_t capacity));
