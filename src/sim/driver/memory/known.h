/* Which content of simulated memory is known: what the same program would have there on a GPU.
 *
 * Content is known that a copy from the host, a memset or a computed kernel wrote. Content is not
 * known that a kernel would have written which is not computed, nor that of untouched memory.
 * Copies within and between devices carry this along. Data that the host copies to a device count
 * as known, wherever the host has them from.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/driver/core/rangemap.h"

/* Known stretches of one chunk's content; starts as {0}. */
struct sim_known {
    struct sim_rangemap ranges;
};

/* Marks a range. Without host memory for the record it counts as unknown. */
void sim_known_set(struct sim_known *known, uint64_t at, uint64_t size, bool is_known);

/* True if all of a range is known. */
bool sim_known_all(const struct sim_known *known, uint64_t at, uint64_t size);

/* The end of the known stretch that `at` is in; `at` if it is in none. */
uint64_t sim_known_end(const struct sim_known *known, uint64_t at);

/* Makes a range as known as one of another chunk is. */
void sim_known_copy(struct sim_known *to, uint64_t to_at, const struct sim_known *from,
                    uint64_t from_at, uint64_t size);

/* Frees the record: nothing is known. */
void sim_known_forget(struct sim_known *known);
