/* File descriptors inside somebody else's process. No locking, no allocation; errno is the
 * caller's to save. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Moves `fd` to a high number with close-on-exec, out of the way of programs that count on low
 * ones; the old number is closed. Returns the new number, or `fd` itself when there is none. */
int spw_fd_park(int fd);

/* Opens a regular file for reading; anything else, such as a pipe or device, is not opened at all
 * (EINVAL). Returns -1 with errno set. */
int spw_fd_open_regular(const char *path);

/* Reads exactly `bytes` at `offset`. False when the file ends before, or on an error. */
bool spw_fd_read_at(int fd, void *ret_bytes, size_t bytes, off_t offset);

/* Writes all of `text`, over interruptions and short writes. False on an error. */
bool spw_fd_write(int fd, const char *text, size_t length);
