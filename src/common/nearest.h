/* Finds the valid name that is closest to a misspelt name, by edit distance. No locking, no
 * allocation. */
#pragma once

#include <stddef.h>

/* Returns the candidate that is most similar to `name`, ignoring case; NULL if none is similar
 * enough. Among equally similar candidates, returns the shortest, and among these the first. The
 * first `prefix_length` bytes of all strings are skipped, because a common prefix would make all
 * names look similar. */
const char *spw_nearest(const char *name, size_t prefix_length, const char *const *candidates,
                        size_t count);
