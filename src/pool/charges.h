/* Charges: how much memory of one device each site holds.
 *
 * A site is a number that whoever allocates gives; the pool knows no more of it. Number 0 takes
 * what has no site and what is beyond the last one (`most` grows before a number is given). Writers
 * hold the pool's lock; single values may be read at any time without it.
 *
 * What every site held when the device held most is kept without a copy of all at each new peak: a
 * site that changes for the first time after the last peak notes what it held until then. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/counters.h"

/* What one site holds, in bytes. */
struct spw_charge {
    _Atomic uint64_t live;
    _Atomic uint64_t peak;
    _Atomic uint64_t at_peak; /* when the device held most, if the site changed since: see seen */
    _Atomic uint64_t seen;    /* the number of peaks when at_peak was noted */
    _Atomic uint64_t total;   /* of all allocations, freed or not */
    _Atomic uint64_t allocs;
    _Atomic uint64_t frees;
};

struct spw_charges {
    struct spw_charge *sites; /* by number, 0 to `most`; the owner's */
    _Atomic uint32_t most;    /* only grows */
    _Atomic uint64_t peaks;   /* how often the device held more than ever before */
};

/* The entry of a site. */
static inline struct spw_charge *spw_pool_charge_of(struct spw_charges *charges, uint32_t site)
{
    uint32_t most = atomic_load_explicit(&charges->most, memory_order_relaxed);

    return &charges->sites[site <= most ? site : 0];
}

/* The last number with an entry, when `known` sites have one at most. */
static inline uint32_t spw_pool_charges_last(const struct spw_charges *charges, uint32_t known)
{
    uint32_t most = atomic_load_explicit(&charges->most, memory_order_relaxed);

    return known < most ? known : most;
}

/* What a site held when the device held most. */
static inline uint64_t spw_pool_charge_at_peak(const struct spw_charges *charges,
                                               const struct spw_charge *charge)
{
    return spw_counter_get(&charge->seen) == spw_counter_get(&charges->peaks)
               ? spw_counter_get(&charge->at_peak)
               : spw_counter_get(&charge->live);
}

/* A site allocates or frees: `change` bytes. */
void spw_pool_charges_move(struct spw_charges *charges, uint32_t site, int64_t change);

/* The device holds more than ever before, the last change included. */
static inline void spw_pool_charges_peak(struct spw_charges *charges)
{
    spw_counter_shift(&charges->peaks, 1);
}
