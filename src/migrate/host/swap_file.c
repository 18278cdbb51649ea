#include "migrate/host/swap_file.h"

#include "common/hash.h"
#include "system/create.h"
#include "system/fd.h"
#include "system/file_limit.h"
#include "system/keep.h"
#include "system/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, ALIGNMENT = 4096 };

/* Creates a file and removes its name, for file systems that do not support nameless files. */
static int create_and_unlink(const char *path)
{
    char SPW_ROOM *name = spw_room_take(PATH_BYTES);
    int fd = name == NULL ? -1 : spw_create_beside(path, S_IRUSR | S_IWUSR, name, PATH_BYTES);

    if (fd >= 0) {
        (void)unlink(name);
    }
    return fd;
}

/* Allocates the buffer. Transfers past the page cache need an aligned one. */
static bool make_buffer(struct spw_swap_file *file)
{
    uintptr_t start;

    file->buffer = NULL;
    file->allocation = malloc(SPW_SWAP_BUFFER_BYTES + ALIGNMENT);
    if (file->allocation != NULL) {
        start = ((uintptr_t)file->allocation + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        file->buffer = (unsigned char *)start;
    }
    return file->buffer != NULL;
}

/* Switches the page cache off or on. Returns false if the file system cannot do without it. */
static bool set_direct(struct spw_swap_file *file, bool direct)
{
    int flags = fcntl(file->fd, F_GETFL);

    file->direct = direct;
    return flags >= 0 &&
           fcntl(file->fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

/* Returns true if a call failed because the device needs another alignment than the buffer's. The
 * file then uses the page cache, and the call should be repeated. */
static bool needs_cache(struct spw_swap_file *file)
{
    return errno == EINVAL && file->direct && set_direct(file, false);
}

int spw_migrate_swap_file_open(const char *folder, struct spw_swap_file *ret_file)
{
    char SPW_ROOM *path = spw_room_take(PATH_BYTES);
    int fd, error;

    if (path == NULL) {
        return ENOMEM;
    }
    if (snprintf(path, PATH_BYTES, "%s/spillway-swap", folder) >= PATH_BYTES) {
        return ENAMETOOLONG;
    }
    if (!make_buffer(ret_file)) {
        return ENOMEM;
    }
    fd = spw_create_nameless(path, S_IRUSR | S_IWUSR);
    fd = fd < 0 ? create_and_unlink(path) : fd;
    if (fd < 0) {
        error = errno;
        free(ret_file->allocation);
        ret_file->buffer = NULL;
        return error;
    }
    ret_file->fd = spw_fd_park(fd);
    ret_file->end = 0;
    ret_file->keeps_buffer = false;
    ret_file->direct = set_direct(ret_file, true);
    return 0;
}

void spw_migrate_swap_file_close(struct spw_swap_file *file)
{
    (void)close(file->fd);
    if (file->keeps_buffer) {
        spw_keep_for_ever(file->allocation);
    } else {
        free(file->allocation);
    }
    file->buffer = NULL;
}

void spw_migrate_swap_file_reserve(struct spw_swap_file *file, uint64_t bytes)
{
    /* A file in memory, or in the page cache, would take the memory of the host at once. */
    if (file->direct && bytes > 0 && spw_file_may_have(file->end + bytes) &&
        fallocate(file->fd, 0, (off_t)file->end, (off_t)bytes) != 0) {
        return; /* whether the disk has room turns out when it is written */
    }
}

int spw_migrate_swap_file_append(struct spw_swap_file *file, size_t bytes, uint64_t *hash)
{
    size_t done = 0;

    if (!spw_file_may_have(file->end + bytes)) {
        return EFBIG;
    }
    while (done < bytes) {
        ssize_t written =
            pwrite(file->fd, file->buffer + done, bytes - done, (off_t)(file->end + done));

        if (written == 0 || (written < 0 && errno != EINTR && !needs_cache(file))) {
            return written == 0 ? ENOSPC : errno;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    file->end += bytes;
    *hash = spw_hash_mix(*hash, spw_hash_large(file->buffer, bytes));
    return 0;
}

void spw_migrate_swap_file_cut(struct spw_swap_file *file, uint64_t end)
{
    file->end = end;
    if (ftruncate(file->fd, (off_t)end) != 0) {
        return; /* the file stays larger than needed */
    }
}

int spw_migrate_swap_file_read(struct spw_swap_file *file, uint64_t offset, size_t bytes,
                               uint64_t *hash)
{
    bool done;

    do {
        errno = EIO; /* a short file sets no errno */
        done = spw_fd_read_at(file->fd, file->buffer, bytes, (off_t)offset);
    } while (!done && needs_cache(file));
    if (!done) {
        return errno;
    }
    *hash = spw_hash_mix(*hash, spw_hash_large(file->buffer, bytes));
    return 0;
}
