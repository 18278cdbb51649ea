/* Polling with growing pauses: check a condition, pause, check it again, and pause twice as long
 * each time. The first pauses, about 200 us together, spin: the timer of a sleep would add 50 us to
 * each. Longer pauses sleep and use no processor.
 *
 *     struct spw_backoff backoff = {.limit_ns = limit_ns};
 *
 *     while (!is_done()) {
 *         if (!spw_backoff_pause(&backoff)) {
 *             return false;
 *         }
 *     }
 *
 * A condition that holds at once costs nothing, because the clock is first read at the first pause.
 * Each pause counts as at most one millisecond of the limit, however long it takes: a thread that
 * is not scheduled cannot poll. No locking: each waiting thread has its own struct. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "system/clock.h"
#include "system/sleep.h"

enum {
    SPW_BACKOFF_FIRST_NS = 3000,
    SPW_BACKOFF_SLEEP_NS = 100000, /* pauses of at least this length sleep, and grow no more */
    SPW_BACKOFF_COUNTS_NS = 1000000,
};

/* Initialised as {.limit_ns = ...}. */
struct spw_backoff {
    uint64_t limit_ns;  /* limit of the whole wait, from the first pause on */
    uint64_t last_ns;   /* time when the last pause began; 0: no pause yet */
    uint64_t waited_ns; /* sum of the pauses, each at most SPW_BACKOFF_COUNTS_NS */
    uint64_t pause_ns;  /* length of the last pause; 0: no pause yet */
};

/* Spins until `ns` nanoseconds after `begin`, a time of spw_clock_ns. */
static inline void spw_backoff_spin(uint64_t begin, uint64_t ns)
{
    while (spw_clock_ns() - begin < ns) {
    }
}

/* Spins or sleeps for one pause, and returns true. If the limit has passed, returns false at
 * once. */
static inline bool spw_backoff_pause(struct spw_backoff *backoff)
{
    uint64_t now = spw_clock_ns();
    uint64_t passed = backoff->pause_ns == 0 ? 0 : now - backoff->last_ns;

    backoff->last_ns = now;
    backoff->waited_ns += passed < SPW_BACKOFF_COUNTS_NS ? passed : SPW_BACKOFF_COUNTS_NS;
    if (backoff->waited_ns >= backoff->limit_ns) {
        return false;
    }
    if (backoff->pause_ns == 0) {
        backoff->pause_ns = SPW_BACKOFF_FIRST_NS;
    } else if (backoff->pause_ns < SPW_BACKOFF_SLEEP_NS) {
        backoff->pause_ns *= 2;
    }
    if (backoff->pause_ns < SPW_BACKOFF_SLEEP_NS) {
        spw_backoff_spin(now, backoff->pause_ns);
    } else {
        spw_sleep_ns(backoff->pause_ns);
    }
    return true;
}
