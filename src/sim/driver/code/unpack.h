/* Unpacks compressed code with the libraries of zstd and LZ4, if they are installed.
 *
 * The libraries are opened with dlopen(), not linked, so that the program does not see their
 * symbols.
 *
 * Locking: none. sim_unpack_start() must be called without the simulator's lock, because a thread
 * that holds the simulator's lock must not take the dynamic linker's lock. */
#pragma once

#include <stddef.h>

#include "sim/driver/code/fatbin.h"

/* Opens the libraries. Later calls do nothing. */
void sim_unpack_start(void);

/* Returns the unpacked cubin, and its size. NULL if the data are damaged, the library is missing,
 * the cubin is implausibly large, or host memory is exhausted. */
unsigned char *sim_unpack(const struct sim_packed *packed, size_t *ret_size);

/* Frees what sim_unpack() returned for `packed`. */
void sim_unpack_free(const struct sim_packed *packed, unsigned char *cubin);
