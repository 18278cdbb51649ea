/* File descriptors in the program's process. No locking, no allocation; errno may change. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Moves `fd` to a high number and sets close-on-exec, because programs may rely on getting low
 * numbers. Closes the old number. Returns the new number, or `fd` itself on failure. */
int spw_fd_park(int fd);

/* Opens a regular file for reading. Returns -1 and sets errno on failure. Pipes, devices and other
 * kinds of files are not opened; errno is then EINVAL. */
int spw_fd_open_regular(const char *path);

/* Returns true if the file is of this kind (S_IFREG, S_IFDIR), belongs to the effective user, and
 * nobody else may write it. */
bool spw_fd_is_own(int fd, mode_t kind);

/* Reads exactly `bytes` at `offset`. Returns false if the file is shorter, or on an error. */
bool spw_fd_read_at(int fd, void *ret_bytes, size_t bytes, off_t offset);

/* Writes all of `text`, and repeats interrupted and short writes. Returns false on an error. If the
 * file would exceed the limit RLIMIT_FSIZE, writes nothing and sets errno to EFBIG, because the
 * kernel would end the process with SIGXFSZ. */
bool spw_fd_write(int fd, const char *text, size_t length);

/* Writes a line with one write(2), so that lines of several threads and processes do not mix.
 * `line`, a buffer of `capacity` bytes, holds the beginning of the line. The added text is
 * truncated if it does not fit. Its control characters are replaced (common/utf8.h), so that no
 * name in it can forge another line. Returns false on an error. */
bool spw_fd_write_line(int fd, char *line, size_t capacity, const char *format, va_list arguments);
