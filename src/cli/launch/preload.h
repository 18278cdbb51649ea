/* The list of libraries in LD_PRELOAD. Changes the environment of this process only, for what it
 * executes next. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Puts `paths` at the front of LD_PRELOAD, in their order, behind the runtime of a sanitizer, which
 * insists on being first. What is in the list already is not repeated. */
void spw_cli_preload_add(const char *const *paths, size_t count);

/* Takes every library of that file name out of LD_PRELOAD. True when there was one. */
bool spw_cli_preload_remove(const char *name);
