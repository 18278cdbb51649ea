/* Suggests the name that a misspelt one may mean, by edit distance. No locking, no allocation. */
#pragma once

#include <stddef.h>

/* Returns the candidate nearest to `name`, ignoring case, or NULL when none is near enough. Among
 * equally near candidates it is the shortest, and among these the first. The first `prefix_length`
 * bytes of all strings are skipped: a common prefix would make all names look similar. */
const char *spw_nearest(const char *name, size_t prefix_length, const char *const *candidates,
                        size_t count);
