/* Warns in one line about loaded libraries that cannot work with the simulated GPU.
 *
 * Locking: none; must be called without the simulator's lock: a thread that holds that lock must
 * not take the dynamic linker's lock. */
#pragma once

#include "sim/driver/core/functions.h"

/* To be called before every call. At the first function lookup and at cuInit, looks for a runtime
 * of another CUDA version; at cuInit, also opens the libraries of system/demangle.h and
 * unpack.h. */
void sim_loaded_libs_check(enum sim_fn fn);

/* Reports that NVIDIA's runtime, linked into the file that contains `caller`, was refused. */
void sim_loaded_libs_refused(const void *caller);
