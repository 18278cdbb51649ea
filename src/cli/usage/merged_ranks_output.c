#include "cli/usage/merged_ranks.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"

#include <inttypes.h>
#include <stdio.h>

/* "3", or "-" if the file names no rank. */
static const char *rank_text(const struct spw_cli_rank_usage *rank, char text[24])
{
    if (rank->file->rank < 0) {
        return "-";
    }
    snprintf(text, 24, "%" PRId64, rank->file->rank);
    return text;
}

/* ---- text ---- */

static void print_ranks(const struct spw_cli_merged_ranks *merged)
{
    printf("%6s  %6s  %12s  %12s  %12s  %s\n", "rank", "device", "peak", "on the host", "spilled",
           "file");
    for (size_t i = 0; i < merged->rank_count; i++) {
        const struct spw_cli_rank_usage *rank = &merged->ranks[i];
        char name[24];

        spw_cli_print(stdout, "%6s  %6d  %12s  %12s  %12s  %s%s%s\n", rank_text(rank, name),
                      rank->ordinal, spw_cli_size(rank->device->peak),
                      spw_cli_size(rank->device->host_peak), spw_cli_size(rank->device->spilled),
                      rank->file->path, rank->file->gap[0] != '\0' ? ": " : "", rank->file->gap);
    }
}

static void print_imbalance(const struct spw_cli_merged_ranks *merged)
{
    const struct spw_cli_rank_usage *largest = &merged->ranks[0];
    char name[24];
    uint64_t sum = 0;

    for (size_t i = 0; i < merged->rank_count; i++) {
        sum += merged->ranks[i].device->peak;
        largest =
            merged->ranks[i].device->peak > largest->device->peak ? &merged->ranks[i] : largest;
    }
    printf(
        "peak of %zu rank%s: mean %s, most %s (rank %s), %.2f times the mean\n", merged->rank_count,
        merged->rank_count == 1 ? "" : "s", spw_cli_size(sum / merged->rank_count),
        spw_cli_size(largest->device->peak), rank_text(largest, name),
        sum == 0 ? 1.0 : (double)largest->device->peak * (double)merged->rank_count / (double)sum);
}

static void print_line(const struct spw_cli_merged_ranks *merged,
                       const struct spw_cli_merged_line *line)
{
    char name[24];

    printf("  %12s  %12s  %12s  %6s  %s\n", spw_cli_size(line->least),
           spw_cli_size(line->sum / merged->rank_count), spw_cli_size(line->most),
           rank_text(&merged->ranks[line->rank], name), line->line->label);
}

static void print_lines(const struct spw_cli_merged_ranks *merged, size_t top)
{
    size_t differ = 0;

    while (differ < merged->line_count &&
           merged->lines[differ].most > merged->lines[differ].least) {
        differ++;
    }
    if (differ > 0) {
        printf("  %12s  %12s  %12s  %6s  %s\n", "least", "mean", "most", "rank",
               "at the ranks' peaks by");
    }
    for (size_t i = 0; i < differ && i < top; i++) {
        print_line(merged, &merged->lines[i]);
    }
    if (differ > top) {
        printf("  and %zu more that differ (--top %zu shows them)\n", differ - top, differ);
    }
    printf("  %zu call site%s held the same on every rank\n", merged->line_count - differ,
           merged->line_count - differ == 1 ? "" : "s");
}

void spw_cli_ranks_print_text(const struct spw_cli_merged_ranks *merged, size_t top)
{
    print_ranks(merged);
    print_imbalance(merged);
    print_lines(merged, top);
}

/* ---- JSON ---- */

static void add_rank(cJSON *list, const struct spw_cli_rank_usage *rank)
{
    cJSON *row = cJSON_CreateObject();

    if (rank->file->rank < 0) {
        cJSON_AddNullToObject(row, "rank");
    } else {
        spw_cli_json_add(row, "rank", rank->file->rank);
    }
    cJSON_AddNumberToObject(row, "device", rank->ordinal);
    cJSON_AddStringToObject(row, "file", rank->file->path);
    spw_cli_json_add(row, "peak_bytes", rank->device->peak);
    spw_cli_json_add(row, "host_peak_bytes", rank->device->host_peak);
    spw_cli_json_add(row, "spilled_bytes", rank->device->spilled);
    cJSON_AddItemToArray(list, row);
}

static void add_line(cJSON *list, const struct spw_cli_merged_line *line)
{
    cJSON *row = cJSON_CreateObject();

    cJSON_AddStringToObject(row, "label", line->line->label);
    spw_cli_json_add(row, "least_bytes", line->least);
    spw_cli_json_add(row, "most_bytes", line->most);
    spw_cli_json_add(row, "sum_bytes", line->sum);
    spw_cli_json_add(row, "most_at", line->rank); /* an index into "ranks" */
    spw_cli_json_add(row, "ranks_with_it", line->holders);
    cJSON_AddStringToObject(row, "site", line->line->text);
    cJSON_AddItemToArray(list, row);
}

void spw_cli_ranks_print_json(const struct spw_cli_merged_ranks *merged)
{
    cJSON *root = cJSON_CreateObject(), *ranks, *lines;

    cJSON_AddNumberToObject(root, "schema", 1);
    ranks = cJSON_AddArrayToObject(root, "ranks");
    for (size_t i = 0; i < merged->rank_count; i++) {
        add_rank(ranks, &merged->ranks[i]);
    }
    lines = cJSON_AddArrayToObject(root, "sites");
    for (size_t i = 0; i < merged->line_count; i++) {
        add_line(lines, &merged->lines[i]);
    }
    spw_cli_json_print(root, /* one_line */ false);
}
