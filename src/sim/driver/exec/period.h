/* Finds the period of a sequence of launches: the number of launches in a step of the program.
 *
 * The key of a launch consists of its kernel and its grid. The distance of a key is the number
 * of launches until the same key comes again. A distance that occurs at least twice in a row may be
 * the period. Launches of similar layers have shorter distances, but these do not last, because the
 * step ends. A key that comes only in every tenth step has a multiple of the period. The period is
 * therefore the smallest distance that has lasted for half as many launches as the distance that
 * lasted longest.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/record.h"

enum { SIM_PERIOD_KEYS = 4096 };

struct sim_period {
    uint64_t count;              /* launches so far */
    uint64_t longest;            /* the most launches that a distance has lasted */
    uint64_t lasted;             /* launches that step.launches has lasted */
    uint64_t seen;               /* the last launch that confirmed step.launches */
    struct sim_record_step step; /* the last period that is complete */
    struct {
        uint64_t key;                   /* 0: free */
        uint64_t last, distance, times; /* `times` in a row */
        struct sim_record_step sums;    /* as they were at the last launch */
    } keys[SIM_PERIOD_KEYS];
};

/* Adds a launch. `key` is not 0. `sums` has the sums of all launches so far, and in `ns` the end
 * of this one. Updates period->step. */
void sim_period_add(struct sim_period *period, uint64_t key, const struct sim_record_step *sums);
