/* The libraries of a program on the simulated GPU: the pool, the simulated driver and runtime, and
 * the simulated NVIDIA libraries that are built. Not thread-safe. */
#pragma once

#include <stdbool.h>

/* Puts the libraries, the pool only if `with_pool`, first in LD_PRELOAD and LD_LIBRARY_PATH of this
 * process's environment, for the programs that it starts. False, with one line of `command` on
 * stderr, when the pool, the driver or the runtime is missing. */
bool spw_cli_sim_libraries_select(const char *command, bool with_pool);
