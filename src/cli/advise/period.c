#include "cli/advise/period.h"

#include <stdbool.h>

enum { MISSES_SHARE = 50 }; /* one element in this many may differ */

static bool repeats(const uint32_t *sequence, size_t count, size_t period)
{
    size_t half = count / 2, misses = 0;

    for (size_t i = half > period ? half : period; i < count; i++) {
        misses += sequence[i] != sequence[i - period];
        if (misses > half / MISSES_SHARE) {
            return false;
        }
    }
    return true;
}

size_t spw_cli_advise_period(const uint32_t *sequence, size_t count)
{
    for (size_t period = 1; period <= count / 2; period++) {
        if (repeats(sequence, count, period)) {
            return period;
        }
    }
    return 0;
}
