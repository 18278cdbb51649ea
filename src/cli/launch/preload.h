/* Changes LD_PRELOAD in this process's environment, for the programs that it starts. Not
 * thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Puts `paths` first in LD_PRELOAD, in their order, but behind the runtime of a sanitizer, which
 * has to be first. Removes other libraries of the same file names. */
void spw_cli_preload_add(const char *const *paths, size_t count);

/* Removes every library of that file name from LD_PRELOAD. True when there was one. */
bool spw_cli_preload_remove(const char *name);

/* Puts the libraries of a program on the simulated GPU first in LD_PRELOAD and LD_LIBRARY_PATH: the
 * pool, if `with_pool`, the simulated driver and runtime, and the simulated NVIDIA libraries that
 * are built. False, with one line of `command` on stderr, when one of the first three is missing.
 */
bool spw_cli_sim_libraries_select(const char *command, bool with_pool);
