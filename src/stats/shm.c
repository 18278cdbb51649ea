#include "stats/shm.h"

#include "common/options.h"
#include "stats/remap.h"
#include "stats/state.h"
#include "system/create.h"
#include "system/fd.h"
#include "system/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_IMAGES = 16, PAGE = 4096 };

static struct spw_stats_room *const room = &spw_stats_files.room;

static int open_in_run_dir(char path[SPW_STATS_PATH])
{
    const char *folder = spw_option_environment("SPILLWAY_RUN_DIR");

    for (int image = 0; folder != NULL && image < MOST_IMAGES; image++) {
        int fd;

        snprintf(path, SPW_STATS_PATH, "%s/%d.%d.sites", folder, (int)getpid(), image);
        fd = spw_create_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

/* Maps over the previous mapping, or anywhere at the first time. */
static void *map(size_t bytes, int fd)
{
    int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE |
                (room->address != NULL ? MAP_FIXED : 0);
    void *address = MAP_FAILED;

    if (fd < 0 || (spw_file_may_have(bytes) && ftruncate(fd, (off_t)bytes) == 0)) {
        address = mmap(room->address, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    }
    return address != MAP_FAILED ? address : NULL;
}

/* Keeps the descriptor open, to back the file or to let others find the memory. */
static void keep(int fd, bool backs)
{
    struct stat status;

    fd = spw_fd_park(fd);
    if (backs && fstat(fd, &status) == 0) {
        room->is_file = true;
        room->fd = fd;
        room->device = status.st_dev;
        room->inode = status.st_ino;
    }
}

void *spw_stats_shm_create(size_t bytes, char ret_path[SPW_STATS_PATH])
{
    int fd = open_in_run_dir(ret_path);
    bool is_file = fd >= 0;
    void *address = NULL;

    if (fd < 0) {
        ret_path[0] = '\0';
        fd = memfd_create("spillway-sites", MFD_CLOEXEC);
    }
    if (fd >= 0) {
        address = map(bytes, fd);
    }
    if (address != NULL) {
        keep(fd, is_file);
    } else {
        if (fd >= 0) {
            close(fd);
        }
        if (is_file) {
            unlink(ret_path);
        }
        ret_path[0] = '\0';
        address = room->address != NULL ? room->address : map(bytes, -1);
    }
    room->address = address;
    room->bytes = bytes;
    return address;
}

/* True if the descriptor is still ours. A program may close all descriptors, and open files of its
 * own under their numbers. */
static bool is_ours(void)
{
    struct stat now;

    return fstat(room->fd, &now) == 0 && now.st_dev == room->device && now.st_ino == room->inode;
}

bool spw_stats_shm_back(const void *from, size_t bytes)
{
    size_t offset = (size_t)((const char *)from - room->address);
    size_t begin = offset / PAGE * PAGE;

    return !room->is_file || (is_ours() && posix_fallocate(room->fd, (off_t)begin,
                                                           (off_t)(offset + bytes - begin)) == 0);
}

bool spw_stats_shm_forget(void)
{
    if (room->is_file && is_ours()) {
        (void)close(room->fd);
    }
    room->is_file = false;
    return room->address == NULL || spw_stats_remap_zeroed(room->address, room->bytes);
}
