#include "common/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 64, MOST_MISTAKES = 3, SHORTEST_BEGINNING = 3, SHORTEST_PART = 4 };

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The number of letters to insert, leave out, replace, or swap with their neighbour to turn one
 * text into the other. Keeps three rows of the table. Texts longer than LONGEST are never near. */
static size_t edit_distance(const char *from, const char *to)
{
    uint8_t rows[3][LONGEST + 1];
    size_t from_length = strlen(from);
    size_t length = strlen(to);

    if (length > LONGEST || from_length > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= length; i++) {
        rows[0][i] = (uint8_t)i;
    }
    for (size_t y = 1; y <= from_length; y++) {
        uint8_t *row = rows[y % 3];
        const uint8_t *above = rows[(y + 2) % 3];
        const uint8_t *two_above = rows[(y + 1) % 3];

        row[0] = (uint8_t)y;
        for (size_t x = 1; x <= length; x++) {
            unsigned replaced = above[x - 1] + !same_letter(from[y - 1], to[x - 1]);
            unsigned least = smallest(replaced, row[x - 1] + 1u, above[x] + 1u);

            if (x > 1 && y > 1 && same_letter(from[y - 1], to[x - 2]) &&
                same_letter(from[y - 2], to[x - 1])) {
                least = smallest(least, two_above[x - 2] + 1u, UINT_MAX);
            }
            row[x] = (uint8_t)least;
        }
    }
    return rows[from_length % 3][length];
}

static const char *skip_prefix(const char *text, size_t prefix_length)
{
    return text + strnlen(text, prefix_length);
}

/* The edit distance. If `wanted` is long enough: 1 when the candidate begins with it, and 2 when
 * the candidate contains it. */
static size_t distance_to(const char *wanted, const char *candidate)
{
    size_t length = strlen(wanted);

    if (length >= SHORTEST_BEGINNING && strncasecmp(wanted, candidate, length) == 0) {
        return 1;
    }
    if (length >= SHORTEST_PART && strcasestr(candidate, wanted) != NULL) {
        return 2;
    }
    return edit_distance(wanted, candidate);
}

const char *spw_nearest(const char *name, size_t prefix_length, const char *const *candidates,
                        size_t count)
{
    const char *wanted = skip_prefix(name, prefix_length);
    size_t length = strlen(wanted);
    size_t allowed = (length + 2) / 3; /* one mistake in about three letters */
    size_t best_distance = (allowed < MOST_MISTAKES ? allowed : MOST_MISTAKES) + 1;
    const char *best = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *candidate = skip_prefix(candidates[i], prefix_length);
        size_t distance = distance_to(wanted, candidate);

        if (distance < best_distance ||
            (best != NULL && distance == best_distance && strlen(candidates[i]) < strlen(best))) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}
