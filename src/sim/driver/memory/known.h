/* Keeps track of the known content of simulated memory. Content is known if the same program would
 * find it there on a GPU.
 *
 * Copies from the host, memsets and computed kernels write known content. The results of other
 * kernels, and untouched memory, are unknown. Copies within and between devices give the
 * destination the state of the source. Data that the host copies to a device always count as known.
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

/* Marks a range. If host memory is exhausted, the range counts as unknown. */
void sim_known_set(struct sim_known *known, uint64_t at, uint64_t size, bool is_known);

/* True if all of a range is known. */
bool sim_known_all(const struct sim_known *known, uint64_t at, uint64_t size);

/* The end of the known stretch that contains `at`; `at` itself if no known stretch contains it. */
uint64_t sim_known_end(const struct sim_known *known, uint64_t at);

/* Copies the state of a range, known or unknown, from another chunk. */
void sim_known_copy(struct sim_known *to, uint64_t to_at, const struct sim_known *from,
                    uint64_t from_at, uint64_t size);

/* Frees the record. Afterwards no content is known. */
void sim_known_forget(struct sim_known *known);
