#include "sim/driver/exec/period.h"

#include <stddef.h>

/* The most places that a key is searched for at. */
enum { PROBES = 8 };

/* A period is no longer valid if it has not occurred for this multiple of its length. */
enum { FORGOTTEN = 8 };

/* Returns the place of a key: its own, a free one, or that of another key, which is lost. */
static size_t place_of(const struct sim_period *period, uint64_t key)
{
    size_t first = (size_t)(key * 0x9e3779b97f4a7c15ULL >> 52), oldest = first;

    for (size_t i = 0; i < PROBES; i++) {
        size_t place = (first + i) % SIM_PERIOD_KEYS;

        if (period->keys[place].key == key || period->keys[place].key == 0) {
            return place;
        }
        if (period->keys[place].last < period->keys[oldest].last) {
            oldest = place;
        }
    }
    return oldest;
}

/* Considers a distance that has lasted for a number of launches. True if it is the period. */
static bool consider(struct sim_period *period, uint64_t distance, uint64_t lasted)
{
    struct sim_record_step *step = &period->step;

    if (step->launches > 0 && period->count - period->seen > FORGOTTEN * step->launches) {
        *step = (struct sim_record_step){.launches = 0};
        period->longest = 0;
    }
    period->longest = lasted > period->longest ? lasted : period->longest;
    if (distance != step->launches) {
        if (step->launches == 0 || (distance < step->launches ? 2 * lasted >= period->longest
                                                              : lasted > 2 * period->lasted)) {
            step->launches = distance;
            period->lasted = 0;
        } else {
            return false;
        }
    }
    period->lasted = lasted > period->lasted ? lasted : period->lasted;
    period->seen = period->count;
    return true;
}

static struct sim_record_step difference(const struct sim_record_step *now,
                                         const struct sim_record_step *before)
{
    struct sim_record_step step = {
        .ns = now->ns - before->ns,
        .host_ns = now->host_ns - before->host_ns,
        .busy_ns = now->busy_ns - before->busy_ns,
        .sure_ns = now->sure_ns - before->sure_ns,
        .moving_ns = now->moving_ns - before->moving_ns,
    };

    for (int i = 0; i < SPW_GPU_TYPES; i++) {
        step.computing_ns[i] = now->computing_ns[i] - before->computing_ns[i];
    }
    return step;
}

void sim_period_add(struct sim_period *period, uint64_t key, const struct sim_record_step *sums)
{
    size_t place = place_of(period, key);
    uint64_t distance;

    period->count++;
    if (period->keys[place].key == key) {
        distance = period->count - period->keys[place].last;
        period->keys[place].times =
            distance == period->keys[place].distance ? period->keys[place].times + 1 : 1;
        period->keys[place].distance = distance;
        if (period->keys[place].times >= 2 &&
            consider(period, distance, distance * period->keys[place].times)) {
            period->step = difference(sums, &period->keys[place].sums);
            period->step.launches = distance;
        }
    } else {
        period->keys[place].key = key;
        period->keys[place].times = 0;
        period->keys[place].distance = 0;
    }
    period->keys[place].last = period->count;
    period->keys[place].sums = *sums;
}
