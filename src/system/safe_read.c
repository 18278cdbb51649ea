#include "system/safe_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

/* Reads through a pipe: write(2) fails with EFAULT for memory that is not mapped. */
static bool peek_by_pipe(uintptr_t address, void *ret_bytes, size_t bytes)
{
    int ends[2];
    bool done;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    done = write(ends[1], (const void *)address, bytes) == (ssize_t)bytes &&
           read(ends[0], ret_bytes, bytes) == (ssize_t)bytes;
    close(ends[0]);
    close(ends[1]);
    return done;
}

bool spw_safe_read(uintptr_t address, void *ret_bytes, size_t bytes)
{
    struct iovec to = {ret_bytes, bytes};
    struct iovec from = {(void *)address, bytes};
    int saved = errno;
    ssize_t copied;
    bool done;

    copied = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    done = copied == (ssize_t)bytes;
    if (copied < 0 && (errno == ENOSYS || errno == EPERM)) {
        done = peek_by_pipe(address, ret_bytes, bytes);
    }
    errno = saved;
    return done;
}
