#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
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

bool spw_fd_write(int fd, const char *text, size_t length)
{
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
