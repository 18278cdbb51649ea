/* File descriptors inside somebody else's process. No locking, no allocation; errno is the
 * caller's to save. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Moves `fd` to a high number with close-on-exec, out of the way of programs that count on low
 * ones; the old number is closed. Returns the new number, or `fd` itself when there is none. */
int spw_fd_park(int fd);

/* Writes all of `text`, over interruptions and short writes. False on an error. */
bool spw_fd_write(int fd, const char *text, size_t length);
