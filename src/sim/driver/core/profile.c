/* The GPUs that can be simulated (device.h). */
#include "sim/driver/core/device.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const struct sim_profile profiles[] = {
#define SIM_PROFILE(...) {__VA_ARGS__},
#include "sim/driver/core/profiles.def"
#undef SIM_PROFILE
};

#define PROFILE_COUNT (sizeof(profiles) / sizeof(profiles[0]))
#define LONGEST_ID    16

const struct sim_profile *sim_profile_find(const char *id)
{
    for (size_t i = 0; i < PROFILE_COUNT; i++) {
        if (strcmp(profiles[i].id, id) == 0) {
            return &profiles[i];
        }
    }
    return NULL;
}

const char *sim_profile_names(void)
{
    static const char names[] = "one of"
#define SIM_PROFILE(id, ...) " " id
#include "sim/driver/core/profiles.def"
#undef SIM_PROFILE
        ;

    return names;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Letters inserted, left out or replaced that turn one text into the other. */
static size_t distance(const char *from, const char *to)
{
    size_t row[LONGEST_ID + 1], length = strlen(to);

    for (size_t x = 0; x <= length; x++) {
        row[x] = x;
    }
    for (size_t y = 1; from[y - 1] != '\0'; y++) {
        size_t diagonal = row[0];

        row[0] = y;
        for (size_t x = 1; x <= length; x++) {
            size_t above = row[x];

            row[x] = least(least(above, row[x - 1]) + 1,
                           diagonal + (same_letter(from[y - 1], to[x - 1]) ? 0 : 1));
            diagonal = above;
        }
    }
    return row[length];
}

const char *sim_profile_nearest(const char *text)
{
    size_t length = strlen(text), best = length;
    const char *nearest = NULL;

    for (size_t i = 0; i < PROFILE_COUNT; i++) {
        const char *id = profiles[i].id;
        size_t mistakes = distance(text, id);

        if (strlen(id) > LONGEST_ID || (mistakes > 3 && strncasecmp(id, text, length) != 0)) {
            continue;
        }
        if (mistakes < best || nearest == NULL) {
            best = mistakes;
            nearest = id;
        }
    }
    return nearest;
}
