/* The memory that a card needs for a simulated program: what the program took, and what a card
 * holds besides (gpu/overheads.def, gpu/communicators.def). One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/reports/cards.h"
#include "cli/reports/sim_result.h"
#include "gpu/profile.h"

/* What the memory of a card is for. */
enum spw_cli_term {
    SPW_CLI_TERM_PROGRAM, /* the peak of the program's memory, library workspaces included */
    SPW_CLI_TERM_CONTEXT, /* CUDA context, code, what libraries keep */
    SPW_CLI_TERM_NCCL,    /* the buffers of communicators */
    SPW_CLI_TERMS,
};

/* How well a term is known. */
enum spw_cli_basis {
    SPW_CLI_EXACT,      /* counted as a driver counts it */
    SPW_CLI_CALIBRATED, /* from published figures of this GPU */
    SPW_CLI_GUESS,      /* from figures of other GPUs */
};

struct spw_cli_need_term {
    uint64_t bytes, most; /* estimate, upper bound */
    enum spw_cli_basis basis;
};

/* In bytes. */
struct spw_cli_need {
    struct spw_cli_need_term terms[SPW_CLI_TERMS];
    uint64_t besides, besides_most; /* the terms behind the program's */
    uint64_t in_all, in_all_most;   /* the sums */
    uint64_t spare;                 /* what was left of the device at the peak */
    bool without_spilling;          /* the program spilled; this is for a card on which it need
                                     * not, and the pool's free memory comes on top */
};

/* The need for what a process did on a device, on that card. */
struct spw_cli_need spw_cli_need_of(const struct spw_cli_sim_device *device,
                                    const struct spw_gpu_profile *card);

/* Returns the need on the card that needs most, of those that the device stands for (cards.h); on
 * the simulated GPU where it stands for none. `spare` is what is left on each of them. */
struct spw_cli_need spw_cli_need_here(const struct spw_cli_sim_device *device);

/* Names for programs: "program", "context", "nccl"; "exact", "calibrated", "guess". Static. */
const char *spw_cli_need_term_name(enum spw_cli_term term);
const char *spw_cli_need_basis_name(enum spw_cli_basis basis);

/* Finds the cards that a device stands for: none if what a card holds besides was simulated, or if
 * the program needs a larger device, as it spilled; and those of the devices of a result. */
void spw_cli_need_cards_of(const struct spw_cli_sim_device *device,
                           struct spw_cli_cards *ret_cards);
void spw_cli_need_cards(const struct spw_cli_sim_result *result, struct spw_cli_cards *ret_cards);

/* Returns the need of all processes that shared the device of that index, likewise: the memory that
 * they held at a time, and for each of them the part of the card that it takes besides. */
struct spw_cli_need spw_cli_need_of_sharers(const struct spw_cli_sim_result *result, int index);

/* The number of cards for which the verdict "fits" holds, in the upper bound, for every device that
 * was used. */
size_t spw_cli_need_fitting(const struct spw_cli_sim_result *result,
                            const struct spw_cli_cards *cards);

/* True if these are all. */
bool spw_cli_need_fits(const struct spw_cli_sim_result *result);

/* True if what rules of a policy placed on the host had found room on the device, too. */
bool spw_cli_need_fits_unplaced(const struct spw_cli_sim_device *device);
