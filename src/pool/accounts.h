/* Accounts: the memory of one device that each call site and each group of blocks holds.
 *
 * Sites and groups are numbers that the caller of the pool chooses. The pool writes these figures
 * with its lock held. Any thread may read single values without the lock. The caller owns the
 * tables, because the call-site table and the statistics share them. Other folders may therefore
 * include this part of pool.h alone.
 *
 * Site 0 is charged for allocations without a site. It is also charged for sites beyond the last
 * entry, but `most` grows before a site gets its number. A new peak copies no figures. Instead,
 * each site stores the bytes that it held at the peak when these bytes next change. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "common/counters.h"

/* ---- by site ---- */

/* The bytes that one site holds. */
struct spw_charge {
    _Atomic uint64_t live;
    _Atomic uint64_t peak;
    _Atomic uint64_t at_peak; /* bytes at the device's peak; valid if `seen` is equal to `peaks` */
    _Atomic uint64_t seen;    /* value of `peaks` when at_peak was stored */
    _Atomic uint64_t total;   /* bytes of all allocations, freed or not */
    _Atomic uint64_t allocs;
    _Atomic uint64_t frees;
};

struct spw_charges {
    struct spw_charge *sites; /* by number of the site, 0 to `most`; not owned */
    _Atomic uint32_t most;    /* highest number of a site with an entry; only grows */
    _Atomic uint64_t peaks;   /* number of new peaks of the device */
};

/* Returns the entry of a site. No lock. */
static inline struct spw_charge *spw_pool_charge_of(struct spw_charges *charges, uint32_t site)
{
    uint32_t most = atomic_load_explicit(&charges->most, memory_order_relaxed);

    return &charges->sites[site <= most ? site : 0];
}

/* Returns the highest number of a site that has an entry; at most `known`. No lock. */
static inline uint32_t spw_pool_charges_last(const struct spw_charges *charges, uint32_t known)
{
    uint32_t most = atomic_load_explicit(&charges->most, memory_order_relaxed);

    return known < most ? known : most;
}

/* Returns the bytes that a site held at the device's peak. No lock. */
static inline uint64_t spw_pool_charge_at_peak(const struct spw_charges *charges,
                                               const struct spw_charge *charge)
{
    return spw_counter_get(&charge->seen) == spw_counter_get(&charges->peaks)
               ? spw_counter_get(&charge->at_peak)
               : spw_counter_get(&charge->live);
}

/* Enters an allocation (`change` bytes, positive) or a free (negative). Caller holds the lock. */
void spw_pool_charges_move(struct spw_charges *charges, uint32_t site, int64_t change);

/* Records that the last change has raised the device to a new peak. Caller holds the lock. */
static inline void spw_pool_charges_peak(struct spw_charges *charges)
{
    spw_counter_shift(&charges->peaks, 1);
}

/* ---- by group ---- */

/* The most groups of a pool. They are numbered from 1. */
enum { SPW_ACCOUNTS = 64 };

/* Figures of one group, in bytes unless noted. The caller writes `refused` and `unmet`. */
struct spw_account {
    _Atomic uint64_t allocs;  /* number of successful allocations */
    _Atomic uint64_t refused; /* number of allocations that the group's limit refused */
    _Atomic uint64_t live;    /* bytes of blocks on both tiers, each rounded up to 512 bytes */
    _Atomic uint64_t live_peak;
    _Atomic uint64_t host; /* the part of live that was on the host from the beginning */
    _Atomic uint64_t host_peak;
    _Atomic uint64_t spilled;  /* bytes that moved to the host later */
    _Atomic uint64_t promoted; /* bytes that moved to the device later */
    _Atomic uint64_t unmet;    /* number of allocations that were not placed as requested */
};

/* Adds `live` bytes to an account; `host` of them are on the host. Both may be negative. Caller
 * holds the lock. */
void spw_pool_account_move(struct spw_account *account, int64_t live, int64_t host);
