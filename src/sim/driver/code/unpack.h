/* Compressed code: opens the libraries that can read it, zstd's and LZ4's, as far as they are
 * installed, and reads it.
 *
 * They are opened, not linked, so that nothing of theirs is added to what the program sees.
 *
 * Locking: none, but must start without the simulator's lock, which is never to be held while the
 * dynamic linker's is taken. */
#pragma once

#include <stddef.h>

#include "sim/driver/code/fatbin.h"

/* Opens the libraries, once. */
void sim_unpack_start(void);

/* The cubin, and its size. NULL if the data are damaged, the library is missing, the cubin would be
 * larger than any, or host memory is out. */
unsigned char *sim_unpack(const struct sim_packed *packed, size_t *ret_size);

/* Gives back what sim_unpack() returned for `packed`. */
void sim_unpack_free(const struct sim_packed *packed, unsigned char *cubin);
