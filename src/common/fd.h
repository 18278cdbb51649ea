/* File descriptors in somebody else's process. No locking, no allocation; errno may change. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Moves `fd` to a high number with close-on-exec, because programs may rely on getting low numbers.
 * Closes the old number. Returns the new one, or `fd` itself when that fails. */
int spw_fd_park(int fd);

/* Opens a regular file for reading. Does not open anything else, such as a pipe or a device
 * (EINVAL). Returns -1 with errno set. */
int spw_fd_open_regular(const char *path);

/* Reads exactly `bytes` at `offset`. False when the file is shorter, or on an error. */
bool spw_fd_read_at(int fd, void *ret_bytes, size_t bytes, off_t offset);

/* Writes all of `text`, repeating interrupted and short writes. Returns false on an error. */
bool spw_fd_write(int fd, const char *text, size_t length);
