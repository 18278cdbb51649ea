#include "record/file.h"

#include "common/fd.h"
#include "common/log.h"
#include "common/process.h"
#include "record/format.h"
#include "stats/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
        !is_before(ret_status->st_mtim, spw_process_start_time(start_ticks))) {
        return false;
    }
    return ret_status->st_size == 0 ||
           (spw_fd_read_at(fd, &magic, sizeof(magic), 0) && magic == SPW_RECORD_MAGIC);
}

static int make(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
}

/* Makes a new file in place of a recording of an earlier run, which nobody writes any more: its
 * lock is held until the new file is there, so that only one process does this. */
static int replace(const char *path, uint64_t start_ticks)
{
    int old = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat opened, named;
    int fd = -1;

    if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) == 0 && is_earlier(old, start_ticks, &opened) &&
        lstat(path, &named) == 0 && named.st_ino == opened.st_ino &&
        named.st_dev == opened.st_dev && unlink(path) == 0) {
        fd = make(path);
    }
    if (old >= 0) {
        (void)close(old);
    }
    return fd;
}

/* Makes a new file at `path`; -1, with errno set, when something else is there. */
static int make_or_replace(const char *path, uint64_t start_ticks)
{
    int fd = make(path);

    if (fd < 0 && errno == EEXIST) {
        fd = replace(path, start_ticks);
        errno = fd < 0 ? EEXIST : errno;
    }
    return fd;
}

static int open_new(struct spw_record_file *file, const char *path, uint64_t start_ticks)
{
    int fd;

    if (!spw_stats_path_expand(path, file->path, sizeof(file->path))) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = make_or_replace(file->path, start_ticks);
    if (fd < 0 && errno == EEXIST) {
        size_t used = strlen(file->path);

        snprintf(file->path + used, sizeof(file->path) - used, ".%d", (int)getpid());
        fd = make_or_replace(file->path, start_ticks);
    }
    return fd;
}

/* The most bytes that the file may have, in whole blocks. */
static uint64_t choose_size(int fd, uint64_t limit, bool permille)
{
    uint64_t least = SPW_RECORD_HEADER + LEAST;
    struct statvfs room;

    if (permille) {
        limit = fstatvfs(fd, &room) == 0 ? (uint64_t)room.f_bavail * room.f_frsize / 1000 * limit
                                         : least;
    }
    limit = limit < least ? least : limit;
    return SPW_RECORD_HEADER + (limit - SPW_RECORD_HEADER) / SPW_RECORD_BLOCK * SPW_RECORD_BLOCK;
}

bool spw_record_file_create(struct spw_record_file *file, const char *path, uint64_t start_ticks,
                            uint64_t limit, bool permille)
{
    int fd = open_new(file, path, start_ticks);
    struct stat status;
    void *map = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &status) == 0) {
        (void)flock(fd, LOCK_EX | LOCK_NB);
        file->device = status.st_dev;
        file->inode = status.st_ino;
        file->map_bytes = choose_size(fd, limit, permille);
        map =
            mmap(NULL, file->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    if (map == MAP_FAILED) {
        spw_log_always("cannot make the recording %s: %s", file->path, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        file->fd = -1;
        return false;
    }
    file->fd = spw_fd_park(fd);
    file->map = map;
    file->backed = 0;
    return true;
}

/* A program may close every descriptor it knows, and open files of its own under the number. */
static bool is_ours(const struct spw_record_file *file)
{
    struct stat now;

    return file->fd >= 0 && fstat(file->fd, &now) == 0 && now.st_dev == file->device &&
           now.st_ino == file->inode;
}

/* Beyond the limit on files the kernel would send a signal. */
static bool may_grow(size_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

bool spw_record_file_grow(struct spw_record_file *file, size_t bytes)
{
    size_t end = bytes + STEP > file->map_bytes ? file->map_bytes : bytes + STEP;

    if (bytes <= file->backed) {
        return true;
    }
    if (bytes > file->map_bytes || !may_grow(end) || !is_ours(file) ||
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
