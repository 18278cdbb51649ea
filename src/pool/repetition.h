/* Repetition: with which period a sequence repeats at its end.
 *
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the shortest period, of at least `least`, with which the last symbols repeat: so many of
 * them as the period has, or an eighth of it and SPW_REPETITION_SYMBOLS at least. `accept` (with
 * `cookie`) has the last word on each candidate. 0 when there is none, or the process has no
 * memory. Takes time in proportion to `count`. */
size_t spw_pool_repetition_find(const uint64_t *symbols, size_t count, size_t least,
                                bool (*accept)(const void *cookie, size_t period),
                                const void *cookie);

enum { SPW_REPETITION_SYMBOLS = 64 };

/* True if the last `last` symbols, at most `count`, are copies of the last `part`. */
bool spw_pool_repetition_is_of(const uint64_t *symbols, size_t count, size_t last, size_t part);

/* True if what comes back with `period` is more than copies of parts of `part` symbols: the last
 * symbols, as far as they agree with those one period before, have a place that differs from the
 * one `part` before, and so has its counterpart of the period before, or it is not known. After a
 * single disturbance they have no such place. */
bool spw_pool_repetition_recurs(const uint64_t *symbols, size_t count, size_t period, size_t part);

/* Returns the shortest part, of at least `least` symbols, of which the last `period` symbols are
 * whole copies; `period` when there is none. */
size_t spw_pool_repetition_part(const uint64_t *symbols, size_t count, size_t period, size_t least);
