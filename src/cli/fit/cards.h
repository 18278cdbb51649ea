/* The GPUs that `spillway fit` answers for. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpu/profile.h"

enum { SPW_CLI_FIT_CARDS = 128 };

struct spw_cli_fit_cards {
    const struct spw_gpu_profile *cards[SPW_CLI_FIT_CARDS]; /* the smallest memory first */
    size_t count;
    bool chosen; /* by the user */
};

/* Reads a list of names, separated by commas; NULL: all known GPUs. False, with one line of
 * `command` on stderr, for an unknown name. */
bool spw_cli_fit_cards_read(const char *command, const char *names,
                            struct spw_cli_fit_cards *ret_cards);

/* The bytes of a card's memory. */
uint64_t spw_cli_fit_card_bytes(const struct spw_gpu_profile *card);
