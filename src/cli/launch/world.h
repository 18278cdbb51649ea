/* Runs single ranks of a PyTorch job without the other ranks: `--world N --rank R,...`. A rank gets
 * the environment that torchrun would set, and src/sim/single_rank in PYTHONPATH.
 *
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SPW_CLI_WORLD_RANKS = 64 }; /* the most in one call */

struct spw_cli_world {
    unsigned size; /* ranks of the job; 0: --world is not given */
    size_t count;
    unsigned ranks[SPW_CLI_WORLD_RANKS]; /* in the order of the option */
};

/* Reads --world and --rank. False, with one line of `command` on stderr, if the ranks cannot be
 * used or the program in `arguments` starts ranks itself. */
bool spw_cli_world_read(const char *command, char *const *arguments,
                        struct spw_cli_world *ret_world);

/* Sets this process's environment for the rank at `index`; does nothing without --world. False,
 * with one line of `command` on stderr, when the installation is incomplete. */
bool spw_cli_world_select(const char *command, const struct spw_cli_world *world, size_t index);
