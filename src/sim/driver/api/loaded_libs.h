/* Other libraries that the process has loaded: warns in one line about those that cannot work with
 * the simulated GPU.
 *
 * Locking: none; must be called without the simulator's lock, which is never to be held while the
 * dynamic linker's is taken. */
#pragma once

#include "sim/driver/core/functions.h"

/* Before every call: when CUDA comes to life, looks for a runtime of another CUDA, and for the
 * libraries that declaration.h and unpack.h need. */
void sim_loaded_libs_check(enum sim_fn fn);

/* NVIDIA's runtime, linked in where `caller` is, was refused. */
void sim_loaded_libs_refused(const void *caller);
