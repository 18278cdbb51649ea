/* The cards that a simulated device stands for. Usually this is the simulated card. If the user set
 * only the size of the memory, the device stands for all cards of about this size. Constant after
 * the options have been read. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/console/messages.h"
#include "gpu/profile.h"

enum { SPW_CLI_CARDS = 128 };

struct spw_cli_cards {
    uint64_t bytes; /* of the device */
    bool by_size;   /* `list` has all cards of about this size */
    size_t count;   /* 0: the device stands for no card */
    const struct spw_gpu_profile *list[SPW_CLI_CARDS];
};

/* Returns the GPU that the options name. */
const struct spw_gpu_profile *spw_cli_cards_profile(void);

/* Returns the least time in seconds for copies of these numbers of bytes, to the GPU and from it,
 * on the link of this GPU. */
double spw_cli_cards_link_seconds(uint64_t in_bytes, uint64_t out_bytes);

/* Finds the cards of a device with `bytes` of memory. */
void spw_cli_cards_of(uint64_t bytes, struct spw_cli_cards *ret_cards);

/* Returns the part of a card's `bytes` that stays free for the system if device and host share the
 * memory; otherwise 0. */
uint64_t spw_cli_cards_reserve(const struct spw_gpu_profile *card, uint64_t bytes);

/* Returns the bytes that a program can use on a card. The result is at most the memory of the
 * device. */
uint64_t spw_cli_cards_room(const struct spw_cli_cards *cards, size_t index);

/* _name adds "a real h100-80g" (for the simulated GPU) or "a card of about 24 GiB" to the line.
 * _describe adds "have 22.03 GiB to 23.64 GiB and hold 111 MiB to 577 MiB besides". It requires at
 * least one card. */
void spw_cli_cards_name(struct spw_cli_line *line, const struct spw_cli_cards *cards);
void spw_cli_cards_describe(struct spw_cli_line *line, const struct spw_cli_cards *cards);

/* Prints a table of all GPUs that can be simulated. */
void spw_cli_cards_print(void);
