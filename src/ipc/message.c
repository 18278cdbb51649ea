#include "ipc/message.h"

#include "system/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The longest wait for an answer while signals interrupt the wait. */
#define RETRY_NS (UINT64_C(5) * 1000 * 1000 * 1000)

socklen_t spw_ipc_address(const struct spw_ipc_handle *handle, struct sockaddr_un *ret_address)
{
    int length;

    memset(ret_address, 0, sizeof(*ret_address));
    ret_address->sun_family = AF_UNIX;
    /* A first byte of zero makes the address abstract. */
    length = snprintf(&ret_address->sun_path[1], sizeof(ret_address->sun_path) - 1,
                      "spillway-ipc-%" PRIu32 "-%" PRIx64 "-%" PRIx64, handle->pid, handle->start,
                      handle->name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

bool spw_ipc_same_user(int socket)
{
    struct ucred other;
    socklen_t length = sizeof(other);

    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
           other.uid == geteuid();
}

union control {
    struct cmsghdr header; /* for its alignment */
    char bytes[CMSG_SPACE(SPW_IPC_BATCH * sizeof(int))];
};

bool spw_ipc_send(int socket, const void *data, size_t bytes, const int *fds, size_t count)
{
    union control control;
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (count > 0) {
        struct cmsghdr *header;

        memset(&control, 0, sizeof(control));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

/* Takes the descriptors out of a message, and closes those beyond `most`. Returns their number. */
static size_t take_fds(struct msghdr *message, int *ret_fds, size_t most)
{
    size_t taken = 0;

    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
            if (taken < most) {
                ret_fds[taken++] = fd;
            } else {
                close(fd);
            }
        }
    }
    return taken;
}

bool spw_ipc_receive(int socket, void *ret_data, size_t bytes, int *ret_fds, size_t most,
                     size_t *ret_count)
{
    union control control;
    struct iovec part = {.iov_base = ret_data, .iov_len = bytes};
    struct msghdr message;
    uint64_t end = spw_clock_ns() + RETRY_NS;
    ssize_t received;
    size_t taken;

    /* Signals of the program interrupt a wait with a time limit, even those with SA_RESTART. */
    do {
        message = (struct msghdr){.msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof(control)};
        received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR && spw_clock_ns() < end);
    taken = received >= 0 ? take_fds(&message, ret_fds, most) : 0;

    *ret_count = 0;
    if (received == (ssize_t)bytes && (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0) {
        *ret_count = taken;
        return true;
    }
    while (taken > 0) {
        close(ret_fds[--taken]);
    }
    return false;
}
