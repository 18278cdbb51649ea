/* Opening files to write, in folders that other users may write too. Whatever spillway writes is
 * opened here (tests/style/test_outputs.py).
 *
 * Self-contained: the simulated driver is built from this source as well. No lock, no allocation;
 * a failure is -1 with errno set. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Creates a new, empty file beside `path`, to be renamed to it later: PATH.PID.NUMBER.tmp with a
 * random number. A file or link that exists already is never opened; another number is tried then.
 * The name goes to `ret_name`, of `capacity` bytes. Returns a descriptor for reading and
 * writing. */
int spw_create_beside(const char *path, mode_t mode, char *ret_name, size_t capacity);

/* Creates a new file in the folder of `path` that has no name yet: nothing is left of it when the
 * process is killed. Not every file system can do that (O_TMPFILE of open(2)). Returns a descriptor
 * for reading and writing. */
int spw_create_nameless(const char *path, mode_t mode);

/* Gives such a file this name; EEXIST when there is something of that name. Needs /proc, or a
 * privilege. Returns 0. */
int spw_create_link(int fd, const char *name);

/* Gives such a file a name as spw_create_beside does. Returns 0. */
int spw_create_name(int fd, const char *path, char *ret_name, size_t capacity);

/* Opens `path`, if relative below the folder in which the process started (common/start.h), with
 * flags of open(2), and the mode of a new file; O_CLOEXEC is added. A symbolic link as the last
 * part of the path is followed when it belongs to the caller or to root, or when only its owner's
 * folder can hold it: one that is neither sticky nor writable by all. Otherwise errno is EACCES.
 * With O_NOFOLLOW no link is followed. */
int spw_create_open(const char *path, int flags, mode_t mode);

/* Opens `path` so with fdopen(3), as a new or an emptied file. This one allocates. NULL on a
 * failure. */
FILE *spw_create_stream(const char *path);

/* Says why a file could not be opened: errno as text, and that its path is another user's link.
 * Valid until the next call of strerror(3). */
const char *spw_create_problem(const char *path);
