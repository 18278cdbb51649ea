#include "system/fd.h"

#include "common/utf8.h"
#include "system/uncancelled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_PARKED = 200 };

int spw_fd_park(int fd)
{
    int parked = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_PARKED);

    if (parked < 0) {
        return fd;
    }
    close(fd);
    return parked;
}

/* Opens the regular file `file` by its path, for machines without /proc. If another file has
 * replaced it since, that file is opened, but not returned. */
static int open_same(const char *path, const struct stat *file)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || (fstat(fd, &status) == 0 && status.st_dev == file->st_dev &&
                   status.st_ino == file->st_ino)) {
        return fd;
    }
    close(fd);
    errno = EINVAL;
    return -1;
}

int spw_fd_open_regular(const char *path)
{
    int file = open(path, O_PATH | O_CLOEXEC);
    struct stat status;
    char name[64];
    int fd = -1;
    int saved;

    if (file < 0) {
        return -1;
    }
    /* The file is opened again by its descriptor, so that no other file can take its place. */
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
        fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) {
            fd = open_same(path, &status);
        }
    } else {
        errno = EINVAL;
    }
    saved = errno;
    close(file);
    errno = saved;
    return fd;
}

bool spw_fd_is_own(int fd, mode_t kind)
{
    struct stat status;

    return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == kind &&
           status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool spw_fd_read_at(int fd, void *ret_bytes, size_t bytes, off_t offset)
{
    char *to = ret_bytes;

    while (bytes > 0) {
        ssize_t length = pread(fd, to, bytes, offset);

        if (length < 0 && errno == EINTR) {
            continue;
        }
        if (length <= 0) {
            return false;
        }
        to += length;
        bytes -= (size_t)length;
        offset += length;
    }
    return true;
}

/* True if a write at the position of `fd` stays within the limit on the size of files. */
static bool may_write(int fd, size_t length)
{
    struct rlimit limit;
    struct stat status;
    off_t at;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return true;
    }
    at = (fcntl(fd, F_GETFL) & O_APPEND) != 0 ? status.st_size : lseek(fd, 0, SEEK_CUR);
    return at < 0 || (uint64_t)at + length <= limit.rlim_cur;
}

bool spw_fd_write(int fd, const char *text, size_t length)
{
    if (!may_write(fd, length)) {
        errno = EFBIG;
        return false;
    }
    while (length > 0) {
        ssize_t written = write(fd, text, length);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        text += written;
        length -= (size_t)written;
    }
    return true;
}

bool spw_fd_write_line(int fd, char *line, size_t capacity, const char *format, va_list arguments)
{
    SPW_UNCANCELLED;
    size_t begin = strlen(line);

    if (vsnprintf(line + begin, capacity - begin, format, arguments) < 0) {
        return false;
    }
    spw_utf8_plain(line + begin, /* keep */ "");
    begin = strlen(line);
    line[begin] = '\n';
    return spw_fd_write(fd, line, begin + 1);
}
