/* The memory that a card needs to run a simulated program. It is the sum of the program's memory
 * and the overhead on the card (gpu/overheads.def, gpu/communicators.def). One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/verdict/cards.h"
#include "cli/verdict/sim_result.h"
#include "gpu/profile.h"

/* The uses of a card's memory. */
enum spw_cli_term {
    SPW_CLI_TERM_PROGRAM, /* peak of the program's memory, including library workspaces */
    SPW_CLI_TERM_CONTEXT, /* CUDA context, code, and memory that libraries keep */
    SPW_CLI_TERM_NCCL,    /* the buffers of communicators */
    SPW_CLI_TERM_HOST,    /* of a GPU without memory of its own: the process's own memory */
    SPW_CLI_TERMS,
};

/* The source of the bytes of a term. */
enum spw_cli_basis {
    SPW_CLI_EXACT,      /* counted in the same way as a driver counts */
    SPW_CLI_CALIBRATED, /* computed from published figures of this GPU */
    SPW_CLI_MEASURED,   /* measured of the process in this run, whose libraries are simulated */
    SPW_CLI_GUESS,      /* computed from figures of other GPUs */
};

struct spw_cli_need_term {
    uint64_t bytes, most; /* estimate, upper bound */
    enum spw_cli_basis basis;
};

/* The memory that a card needs, in bytes. */
struct spw_cli_need {
    struct spw_cli_need_term terms[SPW_CLI_TERMS];
    uint64_t besides, besides_most; /* overhead: all terms except the program's */
    uint64_t in_all, in_all_most;   /* the sums of all terms */
    uint64_t spare;                 /* free memory at the peak */
    bool without_spilling; /* the program spilled; the figures are for a run that does not spill,
                            * and omit the pool's free memory */
};

/* Returns the need of a process on a card, from the memory that the process used on a simulated
 * device. */
struct spw_cli_need spw_cli_need_of(const struct spw_cli_sim_device *device,
                                    const struct spw_gpu_profile *card);

/* Returns the largest need on any card that the device stands for (cards.h). If the device stands
 * for no card, returns the need on the simulated GPU. Each of these cards has at least `spare`
 * bytes free. */
struct spw_cli_need spw_cli_need_here(const struct spw_cli_sim_device *device);

/* Return static names for JSON. A term is "program", "context", "nccl" or "host". A basis is
 * "exact", "calibrated", "measured" or "guess". */
const char *spw_cli_need_term_name(enum spw_cli_term term);
const char *spw_cli_need_basis_name(enum spw_cli_basis basis);

/* _cards_of finds the cards that a device stands for. If the overhead was simulated, or if the
 * program spilled and therefore needs a larger device, there are none. _cards finds the cards of
 * the first used device in the result that stands for any card. */
void spw_cli_need_cards_of(const struct spw_cli_sim_device *device,
                           struct spw_cli_cards *ret_cards);
void spw_cli_need_cards(const struct spw_cli_sim_result *result, struct spw_cli_cards *ret_cards);

/* Returns the need of all processes that shared the device `index`. It is the sum of the memory
 * that the processes held at one time and the overhead of each process. The cards are chosen as in
 * spw_cli_need_here. */
struct spw_cli_need spw_cli_need_of_sharers(const struct spw_cli_sim_result *result, int index);

/* _fitting counts the `cards` that are large enough for every used device, even according to the
 * upper bound. _fits returns true if every used device fits on all cards of the result. */
size_t spw_cli_need_fitting(const struct spw_cli_sim_result *result,
                            const struct spw_cli_cards *cards);
bool spw_cli_need_fits(const struct spw_cli_sim_result *result);

/* Returns true if every device would have room even for the memory that rules of a policy placed
 * on the host. */
bool spw_cli_need_fits_unplaced(const struct spw_cli_sim_result *result);

/* Returns the used device with the least spare memory, or NULL if no device was used. Of devices
 * with equal spare memory, it is the one with most memory on the host. */
const struct spw_cli_sim_device *spw_cli_need_tightest(const struct spw_cli_sim_result *result);
