#include "system/create.h"

#include "system/room.h"
#include "system/start.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* ---- new files ---- */

/* How many names are tried. */
enum { TRIES = 100 };

static uint32_t random_number(void)
{
    uint32_t number = 0;
    struct timespec now;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        number = (uint32_t)now.tv_nsec * 0x9E3779B9 + (uint32_t)(uintptr_t)&now;
    }
    return number;
}

/* Writes a name for a file beside `path`; false when it does not fit. */
static bool make_name(const char *path, char *ret_name, size_t capacity)
{
    int length = snprintf(ret_name, capacity, "%s.%d.%08" PRIx32 ".tmp", path, (int)getpid(),
                          random_number());

    if (length < 0 || (size_t)length >= capacity) {
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}

int spw_create_beside(const char *path, mode_t mode, char *ret_name, size_t capacity)
{
    for (int i = 0; i < TRIES && make_name(path, ret_name, capacity); i++) {
        int fd = open(ret_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

int spw_create_nameless(const char *path, mode_t mode)
{
    const char *slash = strrchr(path, '/');
    char SPW_ROOM *folder = spw_room_take(PATH_MAX);
    int length = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);

    if (folder == NULL) {
        return -1;
    }
    if (snprintf(folder, PATH_MAX, "%.*s", length, slash == NULL ? "." : path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
}

/* Before Linux 6.10, linking an open file needs a privilege or /proc. */
int spw_create_link(int fd, const char *name)
{
    char file[64];

    if (linkat(fd, "", AT_FDCWD, name, AT_EMPTY_PATH) == 0) {
        return 0;
    }
    (void)snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, file, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

int spw_create_name(int fd, const char *path, char *ret_name, size_t capacity)
{
    for (int i = 0; i < TRIES && make_name(path, ret_name, capacity); i++) {
        if (spw_create_link(fd, ret_name) == 0) {
            return 0;
        }
        if (errno != EEXIST) {
            return -1;
        }
    }
    return -1;
}

/* ---- links ---- */

/* The links of /proc belong to the kernel, and may lead to files without a path, such as pipes. */
static bool is_proc(int fd)
{
    enum { PROC = 0x9fa0 };
    struct statfs status;

    return fstatfs(fd, &status) == 0 && status.f_type == PROC;
}

static bool is_trusted(int folder, int link)
{
    struct stat in, status;

    if (fstat(folder, &in) != 0 || fstat(link, &status) != 0) {
        return false;
    }
    return status.st_uid == geteuid() || status.st_uid == 0 ||
           (in.st_mode & (S_ISVTX | S_IWOTH)) == 0;
}

/* Reads the link `name` of a folder if the link is trusted. Opens the link first. So the checked
 * link is the one that is read. */
static bool read_link(int folder, const char *name, char ret_target[PATH_MAX])
{
    int link = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = -1;
    int saved;

    if (link < 0) {
        return false;
    }
    if (is_trusted(folder, link)) {
        length = readlinkat(link, "", ret_target, PATH_MAX - 1);
    } else {
        errno = EACCES;
    }
    saved = errno;
    close(link);
    errno = saved;
    ret_target[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Opens the folder part of `path`, which is relative to the folder `at`. *ret_name is the last part
 * of the path. */
static int open_folder(int at, char *path, const char **ret_name)
{
    char *slash = strrchr(path, '/');
    const char *folder = slash == path ? "/" : path;

    if (slash == NULL) {
        *ret_name = path;
        return openat(at, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    *ret_name = slash + 1;
    *slash = '\0';
    return openat(at, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void close_quietly(int fd)
{
    int saved = errno;

    if (fd >= 0) {
        close(fd);
    }
    errno = saved;
}

int spw_create_open(const char *path, int flags, mode_t mode)
{
    enum { LINKS_MOST = 16 };
    char SPW_ROOM *target = spw_room_take(2 * PATH_MAX);
    char *next = target + PATH_MAX;
    int folder = AT_FDCWD;
    int fd = -1;

    if (target == NULL) {
        return -1;
    }
    flags |= O_CLOEXEC;
    if (!spw_start_path(path, target, PATH_MAX)) {
        errno = strlen(path) < PATH_MAX && spw_start_folder() == NULL ? ENOENT : ENAMETOOLONG;
        return -1;
    }
    if ((flags & O_NOFOLLOW) != 0) {
        return open(target, flags, mode);
    }
    for (int i = 0; i < LINKS_MOST; i++) {
        const char *name;
        int from = folder;

        folder = open_folder(from, target, &name);
        close_quietly(from);
        if (folder < 0) {
            return -1;
        }
        fd = openat(folder, name, is_proc(folder) ? flags : flags | O_NOFOLLOW, mode);
        if (fd >= 0 || errno != ELOOP || !read_link(folder, name, next)) {
            break;
        }
        memcpy(target, next, PATH_MAX);
        errno = ELOOP;
    }
    close_quietly(folder);
    return fd;
}

FILE *spw_create_stream(const char *path)
{
    int fd = spw_create_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (file == NULL) {
        close_quietly(fd);
    }
    return file;
}

const char *spw_create_problem(const char *path)
{
    int error = errno;
    struct stat status;

    if (error == EACCES && lstat(path, &status) == 0 && S_ISLNK(status.st_mode) &&
        status.st_uid != geteuid() && status.st_uid != 0) {
        return "Permission denied (it is a symbolic link of another user)";
    }
    return strerror(error);
}
