#include "cli/advise/reading.h"

#include "common/grow.h"

#include <string.h>

bool spw_cli_advise_reserve(struct spw_cli_advise_history *history, void *list, size_t index,
                            size_t *capacity, size_t bytes)
{
    size_t more = *capacity == 0 ? 256 : *capacity;

    if (index < *capacity) {
        return true;
    }
    while (more <= index) {
        more *= 2;
    }
    if (!spw_resize(list, more, bytes)) {
        history->out_of_memory = true;
        return false;
    }
    memset(*(char **)list + *capacity * bytes, 0, (more - *capacity) * bytes);
    *capacity = more;
    return true;
}

/* ---- live blocks ---- */

/* Returns the number of live blocks that begin at or before an address. */
static size_t place_of(const struct spw_cli_advise_reading *reading, uint64_t address)
{
    size_t low = 0, high = reading->live_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (reading->live[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void spw_cli_advise_add_live(struct spw_cli_advise_reading *reading,
                             const struct spw_cli_advise_live *block)
{
    size_t at = place_of(reading, block->address);

    if (spw_cli_advise_reserve(reading->history, &reading->live, reading->live_count,
                               &reading->live_capacity, sizeof(*reading->live))) {
        memmove(reading->live + at + 1, reading->live + at,
                (reading->live_count - at) * sizeof(*reading->live));
        reading->live[at] = *block;
        reading->live_count++;
    }
}

struct spw_cli_advise_live *spw_cli_advise_find_live(const struct spw_cli_advise_reading *reading,
                                                     uint64_t address)
{
    size_t at = place_of(reading, address);
    struct spw_cli_advise_live *block = at > 0 ? &reading->live[at - 1] : NULL;

    return block != NULL && address - block->address < block->bytes ? block : NULL;
}

/* ---- events ---- */

bool spw_cli_advise_is_backward(const struct spw_cli_advise_reading *reading, uint32_t thread)
{
    return thread < reading->thread_capacity && reading->is_backward[thread];
}

bool spw_cli_advise_is_in_second_half(const struct spw_cli_advise_reading *reading)
{
    return !reading->surveys &&
           (reading->history->has_uses ? reading->kernels : reading->large) >= reading->half;
}

bool spw_cli_advise_begins_with(const struct spw_cli_text *text, const char *prefix)
{
    return text->length >= strlen(prefix) && memcmp(text->bytes, prefix, strlen(prefix)) == 0;
}
