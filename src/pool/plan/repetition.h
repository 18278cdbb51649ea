/* Repetition: finds the period of a sequence that repeats itself at its end.
 *
 * Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the shortest period of the last symbols that is at least `least`; 0 if there is none, or
 * if the process has no memory. At least an eighth of the period must repeat, and at least
 * SPW_REPETITION_SYMBOLS symbols (all symbols of a shorter period). `accept` (with `cookie`) may
 * reject a candidate. The time is proportional to `count`. */
size_t spw_pool_repetition_find(const uint64_t *symbols, size_t count, size_t least,
                                bool (*accept)(const void *cookie, size_t period),
                                const void *cookie);

enum { SPW_REPETITION_SYMBOLS = 64 };

/* Returns true if the last `last` symbols, at most `count`, are repeated copies of the last `part`
 * symbols. */
bool spw_pool_repetition_is_of(const uint64_t *symbols, size_t count, size_t last, size_t part);

/* Returns true if the repetition with `period` is more than copies of a part of `part` symbols.
 * Consider the last symbols that agree with the period before. One of them must differ from the
 * symbol `part` places before it. The symbol one period before that one must also differ from the
 * symbol `part` places before it, or this last symbol must be unknown. A single disturbance causes
 * no such symbol. */
bool spw_pool_repetition_recurs(const uint64_t *symbols, size_t count, size_t period, size_t part);

/* Returns the length of the shortest part, at least `least` symbols, such that the last `period`
 * symbols are whole copies of it. Returns `period` if there is none. */
size_t spw_pool_repetition_part(const uint64_t *symbols, size_t count, size_t period, size_t least);
