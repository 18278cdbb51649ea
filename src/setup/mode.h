/* The words that explain to the user how memory is served, and why. No lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/options.h"

enum { SPW_SETUP_MODE_WHY = 256 }; /* most bytes of a reason */

struct spw_setup_mode {
    const char *name;
    const char *why;
    bool said; /* false: the words are logged only with SPILLWAY_LOG=info */
};

/* Returns the words for a mode. The result may point into `ret_why`, which has room for `capacity`
 * bytes. */
struct spw_setup_mode spw_setup_mode_of(enum spw_mode mode, char *ret_why, size_t capacity);

/* Announces the mode when the first pool is made. Before the first pool, nothing depends on the
 * mode. */
void spw_setup_mode_announce(void);

/* Announces the mode again if PyTorch was found after the first pool was made, and the mode has
 * changed. */
void spw_setup_mode_note(void);
