/* A file system that may have no files without a name (O_TMPFILE). Takes the place of the system's
 * open(); included once by a test program. One thread. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>

/* True: the file system has none. */
static bool no_nameless;

int open(const char *path, int flags, ...)
{
    va_list rest;
    int mode;

    va_start(rest, flags);
    mode = va_arg(rest, int);
    va_end(rest);
    if (no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return openat(AT_FDCWD, path, flags, mode);
}
