/* Counters of one device, in the shared statistics (stats/), where other processes read them.
 *
 * Every access is a relaxed atomic. A single value is never torn, but two counters that are read
 * one after the other may be from different moments. Gauges and peaks of a device are written under
 * its pool's lock; totals are written by any thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum spw_counter {
#define SPW_COUNTER(name, kind, help) SPW_COUNTER_##name,
#include "common/counters.def"
#undef SPW_COUNTER
    SPW_COUNTER_COUNT
};

struct spw_counters {
#define SPW_COUNTER(name, kind, help) _Atomic uint64_t name;
#include "common/counters.def"
#undef SPW_COUNTER
};

static inline uint64_t spw_counter_get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void spw_counter_set(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Adds with an atomic read-modify-write. For totals that several threads raise without a common
 * lock. */
static inline void spw_counter_add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

/* Raises or lowers a gauge whose writers share a lock. Cheaper than spw_counter_add. */
static inline void spw_counter_shift(_Atomic uint64_t *counter, int64_t delta)
{
    spw_counter_set(counter, spw_counter_get(counter) + (uint64_t)delta);
}

/* Raises `peak` to the value of `gauge` if that is higher. Both must be guarded by the same
 * lock. */
static inline void spw_counter_peak(_Atomic uint64_t *peak, const _Atomic uint64_t *gauge)
{
    uint64_t value = spw_counter_get(gauge);

    if (value > spw_counter_get(peak)) {
        spw_counter_set(peak, value);
    }
}
