/* Repetition: finds the period of a sequence that repeats itself at its end.
 *
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the shortest period, at least `least`, of the last symbols; 0 when there is none, or the
 * process has no memory. An eighth of the period must repeat, and at least SPW_REPETITION_SYMBOLS
 * symbols (all of a shorter period). `accept` (with `cookie`) may reject a candidate. Takes time in
 * proportion to `count`. */
size_t spw_pool_repetition_find(const uint64_t *symbols, size_t count, size_t least,
                                bool (*accept)(const void *cookie, size_t period),
                                const void *cookie);

enum { SPW_REPETITION_SYMBOLS = 64 };

/* True if the last `last` symbols, at most `count`, are repeated copies of the last `part`
 * symbols. */
bool spw_pool_repetition_is_of(const uint64_t *symbols, size_t count, size_t last, size_t part);

/* True if the repetition with `period` is more than copies of a part of `part` symbols. Among the
 * last symbols that agree with the period before, one must differ from the symbol `part` places
 * before it. The symbol one period before it must also differ from the symbol `part` places before
 * that, or the latter must be unknown. A single disturbance causes no such symbol. */
bool spw_pool_repetition_recurs(const uint64_t *symbols, size_t count, size_t period, size_t part);

/* Returns the shortest part, of at least `least` symbols, such that the last `period` symbols are
 * whole copies of it; `period` when there is none. */
size_t spw_pool_repetition_part(const uint64_t *symbols, size_t count, size_t period, size_t least);
