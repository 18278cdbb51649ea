/* Opens files for writing, in folders that other users may also write. All files that spillway
 * writes are opened here (tests/style/test_outputs.py).
 *
 * Self-contained: the simulated driver is built from this source as well. No lock, no allocation; a
 * failure is -1 with errno set. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Creates a new, empty file beside `path`, to be renamed to `path` later. Its name is
 * PATH.PID.NUMBER.tmp, with a random number. An existing file or link is never opened; another
 * number is tried instead. The name goes to `ret_name`, of `capacity` bytes. Returns a descriptor
 * for reading and writing. */
int spw_create_beside(const char *path, mode_t mode, char *ret_name, size_t capacity);

/* Creates a new file without a name in the folder of `path`: the end of the process removes it. Not
 * every file system can do that (O_TMPFILE of open(2)). Returns a descriptor for reading and
 * writing. */
int spw_create_nameless(const char *path, mode_t mode);

/* Names a nameless file; EEXIST if the name is taken. Needs /proc or a privilege. Returns 0. */
int spw_create_link(int fd, const char *name);

/* Gives a nameless file a name as spw_create_beside does. Returns 0. */
int spw_create_name(int fd, const char *path, char *ret_name, size_t capacity);

/* Opens `path` with flags of open(2) and the mode of a new file; O_CLOEXEC is added. A relative
 * path starts at the folder of the process's start (system/start.h). A symbolic link as the last
 * part of the path is followed if it belongs to the caller or to root, or if its folder is neither
 * sticky nor writable by all. Otherwise errno is EACCES. With O_NOFOLLOW no link is followed. */
int spw_create_open(const char *path, int flags, mode_t mode);

/* Opens `path` as spw_create_open does, new or emptied, and makes a stream of it (fdopen(3)).
 * Allocates. NULL on a failure. */
FILE *spw_create_stream(const char *path);

/* Returns why a file could not be opened: the text of errno, or that the path is another user's
 * link. Valid until the next call of strerror(3). */
const char *spw_create_problem(const char *path);
