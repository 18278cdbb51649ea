/* The libraries of a program on the simulated GPU: the pool, the simulated driver and runtime, and
 * those NVIDIA libraries that were built for it. Not thread-safe. */
#pragma once

#include <stdbool.h>

/* Puts them first in LD_PRELOAD and LD_LIBRARY_PATH of this process's environment, for the programs
 * that it starts; the pool only if `with_pool`. False, with one line of `command` on stderr, when
 * one of the first three is missing. */
bool spw_cli_sim_libraries_select(const char *command, bool with_pool);
