#include "cli/verdict/outputs.h"

#include <stdio.h>

#include "cli/console/messages.h"
#include "cli/verdict/need.h"

static void take_device(struct spw_cli_rank_row *row, const struct spw_cli_sim_device *device)
{
    struct spw_cli_need need = spw_cli_need_here(device);

    if (device->used && need.in_all_most >= row->need_most) {
        row->live_peak_bytes = device->live_peak_bytes;
        row->need = need.in_all;
        row->need_most = need.in_all_most;
        spw_cli_need_cards_of(device, &row->cards);
    }
}

struct spw_cli_rank_row spw_cli_rank_row_of(unsigned rank, const struct spw_cli_sim_result *result,
                                            int code)
{
    const struct spw_cli_sim_device *device = NULL;
    struct spw_cli_rank_row row = {.rank = rank,
                                   .verdict = spw_cli_verdict_json_name(result, code)};

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        take_device(&row, device);
    }
    return row;
}

static void print_row(const struct spw_cli_rank_row *row)
{
    fprintf(stderr, "spillway:   %8u  %12s  %12s  %12s  %s\n", row->rank,
            spw_cli_size(row->live_peak_bytes), spw_cli_size(row->need),
            spw_cli_size(row->need_most), row->verdict);
}

static void print_extremes(const struct spw_cli_rank_row *rows, size_t count)
{
    const struct spw_cli_rank_row *least = rows;
    const struct spw_cli_rank_row *most = rows;

    for (size_t i = 1; i < count; i++) {
        least = rows[i].need < least->need ? &rows[i] : least;
        most = rows[i].need > most->need ? &rows[i] : most;
    }
    if (least->need == most->need) {
        fprintf(stderr, "spillway:   all of these ranks need as much\n");
        return;
    }
    fprintf(stderr, "spillway:   rank %u needs most, %s; rank %u least, %s\n", most->rank,
            spw_cli_size(most->need), least->rank, spw_cli_size(least->need));
}

void spw_cli_ranks_print(const struct spw_cli_rank_row *rows, size_t count, unsigned world)
{
    struct spw_cli_line name = {""};

    spw_cli_cards_name(&name, &rows[0].cards);
    fprintf(stderr, "spillway: %zu of %u ranks; what %s needs for each:\n", count, world,
            name.text);
    fprintf(stderr, "spillway:   %8s  %12s  %12s  %12s  %s\n", "rank", "peak live", "needs about",
            "at most", "verdict");
    for (size_t i = 0; i < count; i++) {
        print_row(&rows[i]);
    }
    print_extremes(rows, count);
}
