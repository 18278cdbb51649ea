#include "cli/usage/merged_ranks.h"

#include <stdlib.h>
#include <string.h>

/* ---- ranks ---- */

static int by_rank(const void *a, const void *b)
{
    const struct spw_cli_rank_usage *left = a, *right = b;

    if (left->file->rank != right->file->rank) {
        return left->file->rank < right->file->rank ? -1 : 1;
    }
    if (left->file != right->file) {
        return left->file < right->file ? -1 : 1;
    }
    return left->ordinal - right->ordinal;
}

static bool list_ranks(const struct spw_cli_usage *files, size_t count,
                       struct spw_cli_merged_ranks *merged)
{
    size_t most = 0;

    for (size_t i = 0; i < count; i++) {
        most += (size_t)files[i].device_count;
    }
    merged->ranks = calloc(most + 1, sizeof(*merged->ranks));
    if (merged->ranks == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < files[i].device_count; k++) {
            if (files[i].devices[k].used) {
                merged->ranks[merged->rank_count++] = (struct spw_cli_rank_usage){
                    .file = &files[i], .device = &files[i].devices[k], .ordinal = k};
            }
        }
    }
    qsort(merged->ranks, merged->rank_count, sizeof(*merged->ranks), by_rank);
    return true;
}

/* ---- lines ---- */

struct entry {
    const struct spw_cli_usage_line *line;
    size_t rank;
};

static int compare_lines(const struct spw_cli_usage_line *left,
                         const struct spw_cli_usage_line *right)
{
    if (left->hash != right->hash) {
        return left->hash < right->hash ? -1 : 1;
    }
    return strcmp(left->identity, right->identity);
}

static int by_line(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int order = compare_lines(left->line, right->line);

    return order != 0 ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

static struct entry *list_entries(const struct spw_cli_merged_ranks *merged, size_t *ret_count)
{
    struct entry *entries;
    size_t count = 0;

    for (size_t i = 0; i < merged->rank_count; i++) {
        count += merged->ranks[i].device->line_count;
    }
    entries = calloc(count + 1, sizeof(*entries));
    *ret_count = 0;
    for (size_t i = 0; entries != NULL && i < merged->rank_count; i++) {
        for (size_t k = 0; k < merged->ranks[i].device->line_count; k++) {
            entries[(*ret_count)++] = (struct entry){&merged->ranks[i].device->lines[k], i};
        }
    }
    return entries;
}

static struct spw_cli_merged_line merge(const struct entry *entries, size_t count, size_t ranks)
{
    struct spw_cli_merged_line merged = {
        .line = entries[0].line, .rank = entries[0].rank, .holders = count, .least = UINT64_MAX};

    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = entries[i].line->at_peak;

        if (bytes > merged.line->at_peak) {
            merged.line = entries[i].line;
            merged.rank = entries[i].rank;
        }
        merged.least = bytes < merged.least ? bytes : merged.least;
        merged.sum += bytes;
    }
    merged.most = merged.line->at_peak;
    merged.least = count < ranks ? 0 : merged.least;
    return merged;
}

static int by_spread(const void *a, const void *b)
{
    const struct spw_cli_merged_line *left = a, *right = b;
    uint64_t one = left->most - left->least, other = right->most - right->least;

    if (one != other) {
        return one > other ? -1 : 1;
    }
    if (left->sum != right->sum) {
        return left->sum > right->sum ? -1 : 1;
    }
    return compare_lines(left->line, right->line);
}

static bool list_lines(struct spw_cli_merged_ranks *merged)
{
    size_t count, next;
    struct entry *entries = list_entries(merged, &count);

    merged->lines = calloc(count + 1, sizeof(*merged->lines));
    if (entries == NULL || merged->lines == NULL) {
        free(entries);
        return false;
    }
    qsort(entries, count, sizeof(*entries), by_line);
    for (size_t i = 0; i < count; i = next) {
        next = i + 1;
        while (next < count && compare_lines(entries[i].line, entries[next].line) == 0) {
            next++;
        }
        merged->lines[merged->line_count++] = merge(&entries[i], next - i, merged->rank_count);
    }
    free(entries);
    qsort(merged->lines, merged->line_count, sizeof(*merged->lines), by_spread);
    return true;
}

bool spw_cli_ranks_merge(const struct spw_cli_usage *files, size_t count,
                         struct spw_cli_merged_ranks *ret_merged)
{
    *ret_merged = (struct spw_cli_merged_ranks){0};
    if (list_ranks(files, count, ret_merged) && list_lines(ret_merged)) {
        return true;
    }
    spw_cli_ranks_free(ret_merged);
    return false;
}

void spw_cli_ranks_free(struct spw_cli_merged_ranks *merged)
{
    free(merged->ranks);
    free(merged->lines);
    *merged = (struct spw_cli_merged_ranks){0};
}
