/* Changes LD_PRELOAD in the environment of this process, which the started programs inherit. Not
 * thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Inserts `paths` at the front of LD_PRELOAD, in the given order. If LD_PRELOAD contains the
 * runtime of a sanitizer, the runtime stays first, as it requires. Removes other libraries with the
 * same file names. */
void spw_cli_preload_add(const char *const *paths, size_t count);

/* Removes every library with this file name from LD_PRELOAD. Returns true if there was one. */
bool spw_cli_preload_remove(const char *name);

/* Prepares LD_PRELOAD and LD_LIBRARY_PATH for a program on the simulated GPU. Preloads the pool (if
 * `with_pool`), the simulated driver and runtime, and those simulated NVIDIA libraries that are
 * built. If the pool, the driver or the runtime is missing, writes one line for `command` to stderr
 * and returns false. */
bool spw_cli_sim_libraries_select(const char *command, bool with_pool);
