/* The memory that a card needs for a simulated program: the program's memory, and the overhead of
 * the card (gpu/overheads.def, gpu/communicators.def). One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/verdict/cards.h"
#include "cli/verdict/sim_result.h"
#include "gpu/profile.h"

/* The purposes of a card's memory. */
enum spw_cli_term {
    SPW_CLI_TERM_PROGRAM, /* the peak of the program's memory, library workspaces included */
    SPW_CLI_TERM_CONTEXT, /* CUDA context, code, memory that libraries keep */
    SPW_CLI_TERM_NCCL,    /* the buffers of communicators */
    SPW_CLI_TERMS,
};

/* How well a term is known. */
enum spw_cli_basis {
    SPW_CLI_EXACT,      /* counted as a driver counts */
    SPW_CLI_CALIBRATED, /* from published figures of this GPU */
    SPW_CLI_GUESS,      /* from figures of other GPUs */
};

struct spw_cli_need_term {
    uint64_t bytes, most; /* estimate, upper bound */
    enum spw_cli_basis basis;
};

/* The memory that a card needs, in bytes. */
struct spw_cli_need {
    struct spw_cli_need_term terms[SPW_CLI_TERMS];
    uint64_t besides, besides_most; /* the overhead: all terms but the program's */
    uint64_t in_all, in_all_most;   /* the sums of all terms */
    uint64_t spare;                 /* the free memory at the peak */
    bool without_spilling;          /* the program spilled; the need is for a run without
                                     * spilling, and omits the pool's free memory */
};

/* The need on a card for the memory that a process used of a device. */
struct spw_cli_need spw_cli_need_of(const struct spw_cli_sim_device *device,
                                    const struct spw_gpu_profile *card);

/* Returns the largest need on any card that the device stands for (cards.h), or the need on the
 * simulated GPU if the device stands for no card. `spare` is free on each of these cards. */
struct spw_cli_need spw_cli_need_here(const struct spw_cli_sim_device *device);

/* Static names for JSON. Terms: "program", "context", "nccl". Bases: "exact", "calibrated",
 * "guess". */
const char *spw_cli_need_term_name(enum spw_cli_term term);
const char *spw_cli_need_basis_name(enum spw_cli_basis basis);

/* _cards_of finds the cards that a device stands for. There are none if the device's overhead was
 * simulated, or if the program spilled and so needs a larger device. _cards finds the cards of the
 * first used device in a result that stands for any. */
void spw_cli_need_cards_of(const struct spw_cli_sim_device *device,
                           struct spw_cli_cards *ret_cards);
void spw_cli_need_cards(const struct spw_cli_sim_result *result, struct spw_cli_cards *ret_cards);

/* Returns the need of all processes that shared the device `index`: the memory that they held at
 * one time, and the overhead of each process, as in spw_cli_need_here. */
struct spw_cli_need spw_cli_need_of_sharers(const struct spw_cli_sim_result *result, int index);

/* _fitting: the number of `cards` on which all used devices fit, even at the upper bound. _fits:
 * true if all used devices fit on all cards of the result. */
size_t spw_cli_need_fitting(const struct spw_cli_sim_result *result,
                            const struct spw_cli_cards *cards);
bool spw_cli_need_fits(const struct spw_cli_sim_result *result);

/* True if the device would also have room for the memory that rules of a policy placed on the host.
 */
bool spw_cli_need_fits_unplaced(const struct spw_cli_sim_device *device);
