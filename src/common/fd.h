/* File descriptors in somebody else's process. No locking, no allocation; errno may change. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Moves `fd` to a high number with close-on-exec, because programs may rely on getting low numbers.
 * Closes the old number. Returns the new one, or `fd` itself when that fails. */
int spw_fd_park(int fd);

/* Writes all of `text`, repeating interrupted and short writes. Returns false on an error. */
bool spw_fd_write(int fd, const char *text, size_t length);
