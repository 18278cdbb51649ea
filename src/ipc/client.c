#include "ipc/client.h"

#include "ipc/message.h"
#include "system/backoff.h"
#include "system/clock.h"
#include "system/room.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { NS_PER_US = 1000, US_PER_S = 1000000 };

/* Limits each wait on the socket to the time left. False when no time is left. */
static bool limit_waits(int socket, uint64_t end)
{
    uint64_t now = spw_clock_ns();
    uint64_t us = now < end ? (end - now) / NS_PER_US : 0;
    const struct timeval left = {.tv_sec = (time_t)(us / US_PER_S),
                                 .tv_usec = (suseconds_t)(us % US_PER_S)};

    return us > 0 && setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left)) == 0 &&
           setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) == 0;
}

/* Connects to the process that the handle names. */
static enum spw_ipc_reply connect_to(const struct spw_ipc_handle *handle, uint64_t end,
                                     int *ret_socket)
{
    struct sockaddr_un address;
    socklen_t length = spw_ipc_address(handle, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int result;

    if (fd < 0) {
        return SPW_IPC_NO_ROOM;
    }
    do {
        result = limit_waits(fd, end) ? connect(fd, (struct sockaddr *)&address, length) : -1;
    } while (result != 0 && errno == EINTR && spw_clock_ns() < end);
    if (result == 0 && spw_ipc_same_user(fd)) {
        *ret_socket = fd;
        return SPW_IPC_GOT;
    }
    result = result == 0 ? ECONNREFUSED : errno;
    close(fd);
    return result == EAGAIN || result == EINTR ? SPW_IPC_SILENT : SPW_IPC_GONE;
}

/* Makes room for the chunks of a block. */
static bool make_arrays(struct spw_ipc_block *block, const struct spw_ipc_answer *answer)
{
    *block = (struct spw_ipc_block){
        .offset = answer->offset,
        .bytes = answer->bytes,
        .count = answer->count,
        .fds = malloc(answer->count * sizeof(*block->fds)),
        .chunks = calloc(answer->count, sizeof(*block->chunks)),
    };
    for (size_t i = 0; block->fds != NULL && i < block->count; i++) {
        block->fds[i] = -1;
    }
    return block->fds != NULL && block->chunks != NULL;
}

/* Asks for the chunks from `first` on. `ret_fds` has room for a batch; *ret_count must be 0. */
static enum spw_ipc_reply ask(int socket, const struct spw_ipc_handle *handle, size_t first,
                              struct spw_ipc_answer *ret_answer, int *ret_fds, size_t *ret_count)
{
    struct spw_ipc_request request = {
        .version = SPW_IPC_VERSION, .first = (uint32_t)first, .export_id = handle->export_id};

    memcpy(request.key, handle->key, sizeof(request.key));
    if (!spw_ipc_send(socket, &request, sizeof(request), NULL, 0) ||
        !spw_ipc_receive(socket, ret_answer, sizeof(*ret_answer), ret_fds, SPW_IPC_BATCH,
                         ret_count)) {
        return errno == EMFILE || errno == ENFILE ? SPW_IPC_NO_ROOM : SPW_IPC_SILENT;
    }
    if (ret_answer->status != SPW_IPC_GRANTED) {
        return SPW_IPC_DENIED;
    }
    return *ret_count > 0 && ret_answer->count <= SPW_IPC_CHUNKS &&
                   first + *ret_count <= ret_answer->count
               ? SPW_IPC_GOT
               : SPW_IPC_SILENT;
}

/* True if the sum of the sizes cannot overflow. */
static bool are_sizes(const uint64_t *chunks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (chunks[i] == 0 || chunks[i] > UINT64_MAX / SPW_IPC_CHUNKS) {
            return false;
        }
    }
    return true;
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

/* An answer with its descriptors, which is too large for a stack. */
struct batch {
    struct spw_ipc_answer answer;
    int fds[SPW_IPC_BATCH];
};

/* Receives all chunks on a connection. */
static enum spw_ipc_reply receive_all(int socket, const struct spw_ipc_handle *handle, uint64_t end,
                                      struct spw_ipc_block *block)
{
    struct batch SPW_ROOM *got = spw_room_take(sizeof(*got));
    enum spw_ipc_reply reply = SPW_IPC_GOT;
    size_t had = 0;

    if (got == NULL) {
        return SPW_IPC_NO_ROOM;
    }
    do {
        size_t count = 0;

        memset(&got->answer, 0, sizeof(got->answer));
        reply = limit_waits(socket, end) ? ask(socket, handle, had, &got->answer, got->fds, &count)
                                         : SPW_IPC_SILENT;
        if (reply == SPW_IPC_GOT && had == 0 && !make_arrays(block, &got->answer)) {
            reply = SPW_IPC_NO_ROOM;
        }
        if (reply != SPW_IPC_GOT || got->answer.count != block->count ||
            !are_sizes(got->answer.chunks, count)) {
            close_all(got->fds, count);
            return reply != SPW_IPC_GOT ? reply : SPW_IPC_SILENT;
        }
        memcpy(&block->fds[had], got->fds, count * sizeof(got->fds[0]));
        memcpy(&block->chunks[had], got->answer.chunks, count * sizeof(got->answer.chunks[0]));
        had += count;
    } while (had < block->count);
    return SPW_IPC_GOT;
}

enum spw_ipc_reply spw_ipc_fetch(const struct spw_ipc_handle *handle,
                                 struct spw_ipc_block *ret_block)
{
    uint64_t end = spw_clock_ns() + SPW_IPC_WAIT_NS;
    enum spw_ipc_reply reply;
    int socket;

    *ret_block = (struct spw_ipc_block){0};
    if (handle->version != SPW_IPC_VERSION) {
        return SPW_IPC_DENIED;
    }
    reply = connect_to(handle, end, &socket);
    if (reply != SPW_IPC_GOT) {
        return reply;
    }
    reply = receive_all(socket, handle, end, ret_block);
    close(socket);
    if (reply != SPW_IPC_GOT) {
        spw_ipc_block_fini(ret_block);
    }
    return reply;
}

void spw_ipc_block_fini(struct spw_ipc_block *block)
{
    if (block->fds != NULL) {
        close_all(block->fds, block->count);
    }
    free(block->fds);
    free(block->chunks);
    *block = (struct spw_ipc_block){0};
}
