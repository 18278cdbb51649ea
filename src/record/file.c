#include "record/file.h"

#include "record/format.h"
#include "system/create.h"
#include "system/fd.h"
#include "system/file_limit.h"
#include "system/log.h"
#include "system/pid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { MODE = 0666, STEP = 1 << 20, LEAST = 1 << 20 };

static bool is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* True for a recording, or an empty file, that was last written before this process began. */
static bool is_earlier(int fd, uint64_t start_ticks, struct stat *ret_status)
{
    uint64_t magic = 0;

    if (fstat(fd, ret_status) != 0 || !S_ISREG(ret_status->st_mode) ||
        !is_before(ret_status->st_mtim, spw_pid_start_time(start_ticks))) {
        return false;
    }
    return ret_status->st_size == 0 ||
           (spw_fd_read_at(fd, &magic, sizeof(magic), 0) && magic == SPW_RECORD_MAGIC);
}

/* Links the file `nameless` at `path` or, if it is -1, makes an empty file there. Fails if a file
 * exists at `path`. Returns the descriptor. */
static int make(const char *path, int nameless)
{
    if (nameless >= 0) {
        return spw_create_link(nameless, path) == 0 ? nameless : -1;
    }
    return spw_create_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, MODE);
}

/* Replaces the recording of an earlier run, which no process writes any more, by a new file. The
 * old file is locked until the new one exists, so that only one process does this. */
static int replace(const char *path, int nameless, uint64_t start_ticks)
{
    int old = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat opened, named;
    int fd = -1;

    if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) == 0 && is_earlier(old, start_ticks, &opened) &&
        lstat(path, &named) == 0 && named.st_ino == opened.st_ino &&
        named.st_dev == opened.st_dev && unlink(path) == 0) {
        fd = make(path, nameless);
    }
    if (old >= 0) {
        (void)close(old);
    }
    return fd;
}

/* Makes a new file at `path`. Replaces an earlier recording, but no other file. On failure, sets
 * errno and returns -1. */
static int make_or_replace(const char *path, int nameless, uint64_t start_ticks)
{
    int fd = make(path, nameless);

    if (fd < 0 && errno == EEXIST) {
        fd = replace(path, nameless, start_ticks);
        errno = fd < 0 ? EEXIST : errno;
    }
    return fd;
}

/* Makes the file at its path. If another file is there, makes it at PATH.PID, which becomes its
 * path. */
static int make_somewhere(struct spw_record_file *file, int nameless, uint64_t start_ticks)
{
    int fd = make_or_replace(file->path, nameless, start_ticks);
    size_t used = strlen(file->path);

    if (fd < 0 && errno == EEXIST) {
        snprintf(file->path + used, sizeof(file->path) - used, ".%d", (int)getpid());
        fd = make_or_replace(file->path, nameless, start_ticks);
        file->path[fd < 0 ? used : strlen(file->path)] = '\0';
    }
    return fd;
}

/* ---- its beginning ---- */

/* The most bytes that the file may have, in whole blocks. */
static uint64_t choose_size(const char *path, uint64_t limit, bool permille)
{
    uint64_t least = SPW_RECORD_HEADER + LEAST;
    char folder[SPW_RECORD_PATH];
    struct statvfs room;

    if (permille) {
        snprintf(folder, sizeof(folder), "%.*s/", (int)(strrchr(path, '/') - path), path);
        limit = statvfs(folder, &room) == 0 ? (uint64_t)room.f_bavail * room.f_frsize / 1000 * limit
                                            : least;
    }
    limit = limit < least ? least : limit;
    return SPW_RECORD_HEADER + (limit - SPW_RECORD_HEADER) / SPW_RECORD_BLOCK * SPW_RECORD_BLOCK;
}

/* Reserves addresses for the whole file, and memory for its first bytes only. */
static void *take_memory(size_t bytes, size_t first)
{
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory != MAP_FAILED && mprotect(memory, first, PROT_READ | PROT_WRITE) != 0) {
        (void)munmap(memory, bytes);
        return MAP_FAILED;
    }
    return memory;
}

bool spw_record_file_begin(struct spw_record_file *file, const char *path, uint64_t limit,
                           bool permille, size_t first)
{
    void *memory;

    snprintf(file->path, sizeof(file->path), "%s", path);
    file->map_bytes = choose_size(file->path, limit, permille);
    memory = take_memory(file->map_bytes, first);
    if (memory == MAP_FAILED) {
        spw_log_always("cannot make the recording %s: %s", file->path, strerror(errno));
        return false;
    }
    file->fd = -1;
    file->map = memory;
    file->backed = first;
    return true;
}

/* Allocates the file's `backed` bytes on the disk, and writes the first `used` ones. Returns 0 or a
 * negative errno code. */
static int fill(const struct spw_record_file *file, int fd, size_t used)
{
    ssize_t written;
    int err;

    if (!spw_file_may_have(file->backed)) {
        return -EFBIG;
    }
    err = posix_fallocate(fd, 0, (off_t)file->backed);
    if (err != 0) {
        return -err;
    }
    do {
        written = pwrite(fd, file->map, used, 0);
    } while (written < 0 && errno == EINTR);
    if (written != (ssize_t)used) {
        return written < 0 ? -errno : -ENOSPC;
    }
    (void)flock(fd, LOCK_EX | LOCK_NB);
    return 0;
}

/* Makes the file without a name, fills it, and gives it its name. Returns the descriptor; -1 where
 * that is not possible. */
static int publish_nameless(struct spw_record_file *file, uint64_t start_ticks, size_t used)
{
    int nameless = spw_create_nameless(file->path, MODE);
    int fd = nameless >= 0 && fill(file, nameless, used) == 0
                 ? make_somewhere(file, nameless, start_ticks)
                 : -1;

    if (nameless >= 0 && fd < 0) {
        (void)close(nameless);
    }
    return fd;
}

/* Makes the file under its name, and fills it. Returns the descriptor, or a negative errno code. */
static int publish_named(struct spw_record_file *file, uint64_t start_ticks, size_t used)
{
    int fd = make_somewhere(file, -1, start_ticks);
    int err = fd < 0 ? -errno : fill(file, fd, used);

    if (fd >= 0 && err != 0) {
        (void)unlink(file->path);
        (void)close(fd);
    }
    return err != 0 ? err : fd;
}

bool spw_record_file_publish(struct spw_record_file *file, uint64_t start_ticks, size_t used)
{
    int fd = publish_nameless(file, start_ticks, used);
    struct stat status;

    fd = fd >= 0 ? fd : publish_named(file, start_ticks, used);
    if (fd >= 0 && fstat(fd, &status) == 0 &&
        mmap(file->map, file->map_bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == file->map) {
        file->device = status.st_dev;
        file->inode = status.st_ino;
        file->fd = spw_fd_park(fd);
        return true;
    }
    spw_log_always("cannot make the recording %s: %s", file->path,
                   fd == -ENOSPC  ? "the file system has no room"
                   : fd == -EFBIG ? "the limit on the size of files (ulimit -f) is too low"
                                  : strerror(fd < 0 ? -fd : errno));
    if (fd >= 0) {
        (void)unlink(file->path);
        (void)close(fd);
    }
    spw_record_file_forget(file);
    return false;
}

/* ---- its growth and its end ---- */

/* True if the descriptor is still the recording's. A program may close all descriptors, and open
 * files of its own under their numbers. */
static bool is_ours(const struct spw_record_file *file)
{
    struct stat now;

    return file->map != NULL && file->fd >= 0 && fstat(file->fd, &now) == 0 &&
           now.st_dev == file->device && now.st_ino == file->inode;
}

bool spw_record_file_grow(struct spw_record_file *file, size_t bytes)
{
    size_t end = bytes + STEP > file->map_bytes ? file->map_bytes : bytes + STEP;

    if (bytes <= file->backed) {
        return true;
    }
    if (bytes > file->map_bytes || !spw_file_may_have(end) || !is_ours(file) ||
        posix_fallocate(file->fd, (off_t)file->backed, (off_t)(end - file->backed)) != 0) {
        return false;
    }
    file->backed = end;
    return true;
}

void spw_record_file_end(struct spw_record_file *file, size_t bytes)
{
    if (is_ours(file)) {
        (void)ftruncate(file->fd, (off_t)bytes);
        (void)close(file->fd);
    }
    file->fd = -1;
}

void spw_record_file_forget(struct spw_record_file *file)
{
    if (is_ours(file)) {
        (void)close(file->fd);
    }
    if (file->map != NULL) {
        (void)munmap(file->map, file->map_bytes);
    }
    *file = (struct spw_record_file){.fd = -1};
}
