#include "pool/plan/repetition.h"

#include <stdlib.h>

/* Returns the symbol `i` places before the last symbol. */
static uint64_t from_end(const uint64_t *symbols, size_t count, size_t i)
{
    return symbols[count - 1 - i];
}

/* Computes, for each shift, how many symbols at the end agree with the shifted sequence (the Z
 * function of the reversed sequence). */
static void agree(const uint64_t *symbols, size_t count, uint32_t *ret_agreeing)
{
    size_t left = 0, right = 0;

    ret_agreeing[0] = (uint32_t)count;
    for (size_t i = 1; i < count; i++) {
        size_t length = 0;

        if (i < right) {
            length = ret_agreeing[i - left];
            length = length < right - i ? length : right - i;
        }
        while (i + length < count &&
               from_end(symbols, count, length) == from_end(symbols, count, i + length)) {
            length++;
        }
        ret_agreeing[i] = (uint32_t)length;
        if (i + length > right) {
            left = i;
            right = i + length;
        }
    }
}

static size_t evidence_for(size_t period)
{
    size_t share = period / 8 > SPW_REPETITION_SYMBOLS ? period / 8 : SPW_REPETITION_SYMBOLS;

    return period < share ? period : share;
}

size_t spw_pool_repetition_find(const uint64_t *symbols, size_t count, size_t least,
                                bool (*accept)(const void *cookie, size_t period),
                                const void *cookie)
{
    uint32_t *agreeing = count < UINT32_MAX ? malloc((count + 1) * sizeof(*agreeing)) : NULL;
    size_t found = 0;

    if (agreeing == NULL) {
        return 0;
    }
    agree(symbols, count, agreeing);
    for (size_t period = least > 0 ? least : 1; period < count && found == 0; period++) {
        if (agreeing[period] >= evidence_for(period) && accept(cookie, period)) {
            found = period;
        }
    }
    free(agreeing);
    return found;
}

bool spw_pool_repetition_is_of(const uint64_t *symbols, size_t count, size_t last, size_t part)
{
    size_t i = 0;

    while (i + part < last && from_end(symbols, count, i) == from_end(symbols, count, i + part)) {
        i++;
    }
    return i + part >= last;
}

/* Returns true if the symbol `i` places before the last one differs from the symbol `part` places
 * before it, or if that second symbol is unknown. */
static bool differs(const uint64_t *symbols, size_t count, size_t i, size_t part)
{
    return i + part >= count || from_end(symbols, count, i) != from_end(symbols, count, i + part);
}

bool spw_pool_repetition_recurs(const uint64_t *symbols, size_t count, size_t period, size_t part)
{
    size_t i = 0;

    while (!differs(symbols, count, i, period)) {
        if (differs(symbols, count, i, part) && differs(symbols, count, i + period, part)) {
            return true;
        }
        i++;
    }
    return false;
}

size_t spw_pool_repetition_part(const uint64_t *symbols, size_t count, size_t period, size_t least)
{
    for (size_t part = least; part <= period / 2; part++) {
        if (period % part == 0 && spw_pool_repetition_is_of(symbols, count, period, part)) {
            return part;
        }
    }
    return period;
}
