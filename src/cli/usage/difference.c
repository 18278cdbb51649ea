#include "cli/usage/difference.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 4 << 20 }; /* most cells of align's table */

/* ---- figures of a pair ---- */

static uint64_t bytes_of(const struct spw_cli_usage_line *line)
{
    return line != NULL ? line->at_peak : 0;
}

int64_t spw_cli_pair_change(const struct spw_cli_pair *pair)
{
    return (int64_t)(bytes_of(pair->after) - bytes_of(pair->before));
}

bool spw_cli_pair_moved(const struct spw_cli_pair *pair)
{
    return pair->before != NULL && pair->after != NULL &&
           strcmp(pair->before->identity, pair->after->identity) != 0;
}

const char *spw_cli_pair_label(const struct spw_cli_pair *pair)
{
    return pair->after != NULL ? pair->after->label : pair->before->label;
}

/* ---- order ---- */

static int compare_text(const void *left, const void *right)
{
    const struct spw_cli_usage_line *a = *(const struct spw_cli_usage_line *const *)left;
    const struct spw_cli_usage_line *b = *(const struct spw_cli_usage_line *const *)right;

    return strcmp(a->identity, b->identity);
}

/* Sorts lines by family and then by their place in the program, beginning with the outermost
 * frame. */
static int compare_place(const void *left, const void *right)
{
    const struct spw_cli_usage_line *a = *(const struct spw_cli_usage_line *const *)left;
    const struct spw_cli_usage_line *b = *(const struct spw_cli_usage_line *const *)right;
    int order = strcmp(a->family, b->family);

    for (size_t i = a->line_count; order == 0 && i > 0 && i <= b->line_count; i--) {
        order = a->lines[i - 1] < b->lines[i - 1] ? -1 : a->lines[i - 1] > b->lines[i - 1];
    }
    return order != 0 ? order : strcmp(a->identity, b->identity);
}

static int compare_change(const void *left, const void *right)
{
    const struct spw_cli_pair *a = left, *b = right;
    int64_t by_a = spw_cli_pair_change(a), by_b = spw_cli_pair_change(b);
    uint64_t most_a = by_a < 0 ? (uint64_t)-by_a : (uint64_t)by_a;
    uint64_t most_b = by_b < 0 ? (uint64_t)-by_b : (uint64_t)by_b;

    return most_a != most_b ? (most_a < most_b ? 1 : -1)
                            : strcmp(spw_cli_pair_label(a), spw_cli_pair_label(b));
}

/* ---- matching ---- */

struct lines {
    const struct spw_cli_usage_line **of;
    size_t count;
};

struct matching {
    struct lines before, after;
    struct spw_cli_pair *pairs;
    size_t count;
};

static void add_pair(struct matching *matching, const struct spw_cli_usage_line *before,
                     const struct spw_cli_usage_line *after)
{
    if (bytes_of(before) > 0 || bytes_of(after) > 0) {
        matching->pairs[matching->count++] = (struct spw_cli_pair){before, after};
    }
}

/* Pairs equal lines. Lines that have no equal line stay in `matching`. */
static void match_same(struct matching *matching)
{
    struct lines *before = &matching->before, *after = &matching->after;
    size_t i = 0, j = 0, left_before = 0, left_after = 0;

    qsort(before->of, before->count, sizeof(*before->of), compare_text);
    qsort(after->of, after->count, sizeof(*after->of), compare_text);
    while (i < before->count || j < after->count) {
        int order = i == before->count  ? 1
                    : j == after->count ? -1
                                        : compare_text(&before->of[i], &after->of[j]);

        if (order == 0) {
            add_pair(matching, before->of[i++], after->of[j++]);
        } else if (order < 0) {
            before->of[left_before++] = before->of[i++];
        } else {
            after->of[left_after++] = after->of[j++];
        }
    }
    before->count = left_before;
    after->count = left_after;
}

static uint64_t distance(const struct spw_cli_usage_line *a, const struct spw_cli_usage_line *b)
{
    uint64_t x = bytes_of(a), y = bytes_of(b);

    return x < y ? y - x : x - y;
}

/* Pairs the remaining lines of a family in program order at the least cost. A pair costs the
 * difference of its bytes. A line without a partner costs all its bytes. cost[i][j] is the least
 * cost of pairing the lines from i and j on. */
static void align(struct matching *matching, const struct spw_cli_usage_line **before, size_t n,
                  const struct spw_cli_usage_line **after, size_t m, uint64_t *cost)
{
    size_t width = m + 1, i = n + 1, j;

    while (i-- > 0) {
        for (j = m + 1; j-- > 0;) {
            uint64_t least = i == n && j == m ? 0 : UINT64_MAX, next;

            if (i < n) {
                least = cost[(i + 1) * width + j] + bytes_of(before[i]);
            }
            if (j < m) {
                next = cost[i * width + j + 1] + bytes_of(after[j]);
                least = next < least ? next : least;
            }
            if (i < n && j < m) {
                next = cost[(i + 1) * width + j + 1] + distance(before[i], after[j]);
                least = next <= least ? next : least;
            }
            cost[i * width + j] = least;
        }
    }
    for (i = 0, j = 0; i < n || j < m;) {
        uint64_t here = cost[i * width + j];

        if (i < n && j < m &&
            here == cost[(i + 1) * width + j + 1] + distance(before[i], after[j])) {
            add_pair(matching, before[i++], after[j++]);
        } else if (i < n && here == cost[(i + 1) * width + j] + bytes_of(before[i])) {
            add_pair(matching, before[i++], NULL);
        } else {
            add_pair(matching, NULL, after[j++]);
        }
    }
}

/* Pairs the lines of a family in their order. Used for families that have too many lines to
 * align. */
static void pair_in_order(struct matching *matching, const struct spw_cli_usage_line **before,
                          size_t n, const struct spw_cli_usage_line **after, size_t m)
{
    for (size_t i = 0; i < n || i < m; i++) {
        add_pair(matching, i < n ? before[i] : NULL, i < m ? after[i] : NULL);
    }
}

static size_t end_of_family(const struct lines *lines, size_t from, const char *family)
{
    while (from < lines->count && strcmp(lines->of[from]->family, family) == 0) {
        from++;
    }
    return from;
}

static void match_moved(struct matching *matching, uint64_t *cost)
{
    struct lines *before = &matching->before, *after = &matching->after;

    qsort(before->of, before->count, sizeof(*before->of), compare_place);
    qsort(after->of, after->count, sizeof(*after->of), compare_place);
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        const char *family = i == before->count  ? after->of[j]->family
                             : j == after->count ? before->of[i]->family
                             : strcmp(before->of[i]->family, after->of[j]->family) <= 0
                                 ? before->of[i]->family
                                 : after->of[j]->family;
        size_t i_end = end_of_family(before, i, family), j_end = end_of_family(after, j, family);

        if ((i_end - i + 1) * (j_end - j + 1) <= CELLS) {
            align(matching, before->of + i, i_end - i, after->of + j, j_end - j, cost);
        } else {
            pair_in_order(matching, before->of + i, i_end - i, after->of + j, j_end - j);
        }
        i = i_end;
        j = j_end;
    }
}

static uint64_t *room_to_align(const struct matching *matching)
{
    size_t n = matching->before.count + 1, m = matching->after.count + 1;

    return calloc(n <= CELLS / m ? n * m : CELLS, sizeof(uint64_t));
}

static bool collect(const struct spw_cli_device_usage *device, struct lines *ret_lines)
{
    size_t count = device != NULL ? device->line_count : 0;

    *ret_lines = (struct lines){calloc(count + 1, sizeof(*ret_lines->of)), count};
    for (size_t i = 0; ret_lines->of != NULL && i < count; i++) {
        ret_lines->of[i] = &device->lines[i];
    }
    return ret_lines->of != NULL;
}

bool spw_cli_pair_lines(const struct spw_cli_device_usage *before,
                        const struct spw_cli_device_usage *after, struct spw_cli_pair **ret_pairs,
                        size_t *ret_count)
{
    struct matching matching = {0};
    uint64_t *cost = NULL;

    if (collect(before, &matching.before) && collect(after, &matching.after)) {
        matching.pairs =
            calloc(matching.before.count + matching.after.count + 1, sizeof(*matching.pairs));
    }
    if (matching.pairs != NULL) {
        match_same(&matching);
        cost = room_to_align(&matching);
    }
    if (cost != NULL) {
        match_moved(&matching, cost);
        qsort(matching.pairs, matching.count, sizeof(*matching.pairs), compare_change);
    } else {
        free(matching.pairs);
        matching.pairs = NULL;
    }
    free(cost);
    free(matching.before.of);
    free(matching.after.of);
    *ret_pairs = matching.pairs;
    *ret_count = matching.count;
    return matching.pairs != NULL;
}
