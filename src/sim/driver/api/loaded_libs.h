/* Warns in one line about loaded libraries that cannot work with the simulated GPU.
 *
 * Locking: none. The functions must be called without the simulator's lock, because a thread that
 * holds the simulator's lock must not take the dynamic linker's lock. */
#pragma once

#include "sim/driver/core/functions.h"

/* Must be called at the beginning of every exported function. At the first function lookup and at
 * cuInit, looks for a loaded runtime of another CUDA version. At cuInit, also opens the libraries
 * of system/demangle.h and unpack.h. */
void sim_loaded_libs_check(enum sim_fn fn);

/* Reports that the simulator refused NVIDIA's runtime, which is linked into the file that contains
 * `caller`. */
void sim_loaded_libs_refused(const void *caller);
