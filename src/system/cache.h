/* The user's cache folder. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of spillway's cache folder: $XDG_CACHE_HOME/spillway or ~/.cache/spillway. With
 * `make`, creates it. False if there is none: no variable has an absolute path, the path is longer
 * than `capacity`, or the folder cannot be created. */
bool spw_cache_folder(bool make, char *ret_folder, size_t capacity);
