/* Opens files for writing, in folders that may be writable for other users. All files that spillway
 * writes are opened here (tests/style/test_outputs.py).
 *
 * Self-contained: the simulated driver is also built from this source. No lock, no allocation. On
 * failure, a function returns -1 and sets errno. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Creates a new, empty file in the folder of `path`. The caller will rename it to `path`. Its name
 * is PATH.PID.NUMBER.tmp, with a random number. An existing file or link is never opened; another
 * number is tried instead. Writes the name to `ret_name`, which has `capacity` bytes. Returns a
 * descriptor for reading and writing. */
int spw_create_beside(const char *path, mode_t mode, char *ret_name, size_t capacity);

/* Creates a new file without a name in the folder of `path`. The file is removed when the process
 * ends. Not every file system supports this (O_TMPFILE of open(2)). Returns a descriptor for
 * reading and writing. */
int spw_create_nameless(const char *path, mode_t mode);

/* Gives a name to a nameless file. Fails with EEXIST if the name is already used. Needs /proc or a
 * privilege. Returns 0 on success. */
int spw_create_link(int fd, const char *name);

/* Gives a nameless file a name as spw_create_beside does. Returns 0 on success. */
int spw_create_name(int fd, const char *path, char *ret_name, size_t capacity);

/* Opens `path` with flags of open(2) and the mode of a new file. O_CLOEXEC is added. A relative
 * path is relative to the folder where the process started (system/start.h). If the last part of
 * the path is a symbolic link, it is followed in two cases: the link belongs to the caller or to
 * root, or its folder is neither sticky nor writable by all. Otherwise errno is EACCES. With
 * O_NOFOLLOW no link is followed. */
int spw_create_open(const char *path, int flags, mode_t mode);

/* Opens `path` as spw_create_open does, as a new or truncated file, and makes a stream of it
 * (fdopen(3)). Allocates. Returns NULL on failure. */
FILE *spw_create_stream(const char *path);

/* Returns the reason why a file could not be opened: the text of errno, or that the path is another
 * user's link. Valid until the next call of strerror(3). */
const char *spw_create_problem(const char *path);
