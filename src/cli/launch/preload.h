/* Changes LD_PRELOAD in this process's environment, for the programs that it starts. Not
 * thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Puts `paths` first in LD_PRELOAD, in their order, but after the runtime of a sanitizer, which has
 * to be first. Removes other libraries with the same file names. */
void spw_cli_preload_add(const char *const *paths, size_t count);

/* Removes every library with this file name from LD_PRELOAD. True if there was one. */
bool spw_cli_preload_remove(const char *name);

/* Prepares LD_PRELOAD and LD_LIBRARY_PATH for a program on the simulated GPU. Preloads the pool (if
 * `with_pool`), the simulated driver and runtime, and the simulated NVIDIA libraries that are
 * built. False, with one line of `command` on stderr, if the pool, the driver or the runtime is
 * missing. */
bool spw_cli_sim_libraries_select(const char *command, bool with_pool);
