/* The name somebody meant: nearest neighbours by edit distance, for messages. No locking, no
 * allocation. */
#pragma once

#include <stddef.h>

/* The candidate nearest to `name`, letter case aside, or NULL when none is near enough to be
 * worth a suggestion. `prefix_length` bytes at the front of every string are not compared, so that
 * a prefix all of them share does not make everything look alike. */
const char *spw_nearest(const char *name, size_t prefix_length, const char *const *candidates,
                        size_t count);
