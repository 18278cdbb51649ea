/* File descriptors in somebody else's process. No locking, no allocation; errno may change. */
#pragma once

#include <stdarg.h>
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

/* Writes all of `text`, repeating interrupted and short writes. Returns false on an error: EFBIG,
 * with nothing written, where the limit on the size of files (RLIMIT_FSIZE) would have the kernel
 * end the process with SIGXFSZ. */
bool spw_fd_write(int fd, const char *text, size_t length);

/* Writes a line with one write(2): lines of several threads and processes do not mix. The buffer
 * `line`, of `capacity` bytes, holds its beginning. The text that is added is made plain
 * (common/utf8.h), so that no name forges another line, and cut if it is too long. False on an
 * error. */
bool spw_fd_write_line(int fd, char *line, size_t capacity, const char *format, va_list arguments);
