/* A table of the ranks of a job that were run one after the other. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cli/verdict/cards.h"
#include "cli/verdict/sim_result.h"

/* One rank's run, with figures in bytes of the device that it needs most of. */
struct spw_cli_rank_row {
    unsigned rank;
    const char *verdict; /* static */
    uint64_t live_peak_bytes;
    uint64_t need, need_most; /* of a card */
    struct spw_cli_cards cards;
};

/* The row of a run whose command ended with exit code `code`. */
struct spw_cli_rank_row spw_cli_rank_row_of(unsigned rank, const struct spw_cli_sim_result *result,
                                            int code);

/* Prints the rows, and the ranks that need most and least, on stderr. */
void spw_cli_ranks_print(const struct spw_cli_rank_row *rows, size_t count, unsigned world);
