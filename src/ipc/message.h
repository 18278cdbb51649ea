/* The messages between two processes: a request, an answer, and the descriptors of chunks.
 *
 * The socket is abstract: it has no file that a killed process would leave behind. Its type is
 * SOCK_SEQPACKET: each receive gets what one send sent. Each side asks the kernel for the user of
 * the other process, and refuses processes of other users. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ipc/handle.h"

/* Chunks in one message (the kernel passes at most 253 descriptors at a time), and in a block. */
enum { SPW_IPC_BATCH = 250, SPW_IPC_CHUNKS = 1 << 16 };

struct spw_ipc_request {
    uint32_t version;
    uint32_t first; /* first chunk of the answer */
    uint64_t export_id;
    uint8_t key[SPW_IPC_KEY_BYTES];
};

enum spw_ipc_status { SPW_IPC_GRANTED = 1, SPW_IPC_UNKNOWN };

/* The answer, with the descriptors of the chunks from `first` on, at most a batch. */
struct spw_ipc_answer {
    uint32_t status;                /* enum spw_ipc_status */
    uint32_t count;                 /* of all chunks of the block */
    uint64_t offset;                /* of the block in the first chunk */
    uint64_t bytes;                 /* of the block */
    uint64_t chunks[SPW_IPC_BATCH]; /* sizes of the chunks in this answer */
};

/* Writes the address of a process's socket. Returns its length. */
socklen_t spw_ipc_address(const struct spw_ipc_handle *handle, struct sockaddr_un *ret_address);

/* True if the process at the other end belongs to this process's user. */
bool spw_ipc_same_user(int socket);

/* Sends `bytes` of `data` with `count` descriptors, without waiting. */
bool spw_ipc_send(int socket, const void *data, size_t bytes, const int *fds, size_t count);

/* Receives exactly `bytes`, and at most `most` descriptors, which are close-on-exec. On failure no
 * descriptor stays open, and *ret_count is 0. */
bool spw_ipc_receive(int socket, void *ret_data, size_t bytes, int *ret_fds, size_t most,
                     size_t *ret_count);
