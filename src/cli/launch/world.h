/* Runs single ranks of a PyTorch job without the other ranks (`--world N --rank R,...`). A rank
 * gets the environment that torchrun would set. In addition, PYTHONPATH contains
 * src/sim/single_rank.
 *
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SPW_CLI_WORLD_RANKS = 64 }; /* most ranks in one call */

struct spw_cli_world {
    unsigned size; /* number of ranks in the job; 0: --world is not given */
    size_t count;
    unsigned ranks[SPW_CLI_WORLD_RANKS]; /* in the order of the option */
};

/* Reads --world and --rank. If the ranks are not usable, or if the program in `arguments` starts
 * ranks itself, writes one line for `command` to stderr and returns false. */
bool spw_cli_world_read(const char *command, char *const *arguments,
                        struct spw_cli_world *ret_world);

/* Sets the environment of this process for the rank at `index`. Does nothing if --world is not
 * given. If the installation is incomplete, writes one line for `command` to stderr and returns
 * false. */
bool spw_cli_world_select(const char *command, const struct spw_cli_world *world, size_t index);
