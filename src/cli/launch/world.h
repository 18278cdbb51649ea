/* Single ranks of a PyTorch job whose other ranks do not run: `--world N --rank R,...`. A rank gets
 * the environment that torchrun would give it, and src/sim/single_rank in PYTHONPATH.
 *
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SPW_CLI_WORLD_RANKS = 64 }; /* that one call may run */

struct spw_cli_world {
    unsigned size; /* ranks of the job; 0: --world is not given */
    size_t count;
    unsigned ranks[SPW_CLI_WORLD_RANKS]; /* to run, in the order of the option */
};

/* Reads the two options. False, with one line of `command` on stderr, when the ranks cannot be used
 * or `arguments` starts ranks itself. */
bool spw_cli_world_read(const char *command, char *const *arguments,
                        struct spw_cli_world *ret_world);

/* Sets this process's environment for the rank at `index`; nothing without --world. False, with one
 * line of `command` on stderr, when the installation is incomplete. */
bool spw_cli_world_select(const char *command, const struct spw_cli_world *world, size_t index);
