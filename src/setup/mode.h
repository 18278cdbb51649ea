/* How memory is served, and why, in words: for the user, once a pool is there. No lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/options.h"

enum { SPW_SETUP_MODE_WHY = 256 }; /* bytes of a reason that is made */

struct spw_setup_mode {
    const char *name;
    const char *why;
    bool said; /* to the user; else only with SPILLWAY_LOG=info */
};

/* The words for a mode. The reason may be in `ret_why`, which holds `capacity` bytes. */
struct spw_setup_mode spw_setup_mode_of(enum spw_mode mode, char *ret_why, size_t capacity);

/* Announces the mode, with the first pool: nothing depends on the mode before. */
void spw_setup_mode_announce(void);

/* PyTorch was found after the first pool: says the mode again if it is another one. */
void spw_setup_mode_note(void);
