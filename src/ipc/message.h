/* The messages between two processes: a request, an answer, and the descriptors of chunks.
 *
 * The socket is abstract, so a killed process leaves no file behind. Its type is SOCK_SEQPACKET, so
 * each receive returns the data of exactly one send. Each side asks the kernel for the user of the
 * other process, and refuses processes of other users. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ipc/handle.h"

/* The most chunks in one message, and in a block. The kernel passes at most 253 descriptors in one
 * message. */
enum { SPW_IPC_BATCH = 250, SPW_IPC_CHUNKS = 1 << 16 };

struct spw_ipc_request {
    uint32_t version;
    uint32_t first; /* index of the first chunk in the answer */
    uint64_t export_id;
    uint8_t key[SPW_IPC_KEY_BYTES];
};

enum spw_ipc_status { SPW_IPC_GRANTED = 1, SPW_IPC_UNKNOWN };

/* The answer. The descriptors of the chunks from `first` on come with it, at most SPW_IPC_BATCH. */
struct spw_ipc_answer {
    uint32_t status;                /* enum spw_ipc_status */
    uint32_t count;                 /* number of all chunks of the block */
    uint64_t offset;                /* offset of the block in the first chunk */
    uint64_t bytes;                 /* size of the block */
    uint64_t chunks[SPW_IPC_BATCH]; /* sizes of the chunks in this answer */
};

/* Writes the address of the socket of the process that the handle names. Returns the length of the
 * address. */
socklen_t spw_ipc_address(const struct spw_ipc_handle *handle, struct sockaddr_un *ret_address);

/* Returns true if the process at the other end belongs to the same user as this process. */
bool spw_ipc_same_user(int socket);

/* Sends `bytes` of `data` with `count` descriptors, without waiting. Returns false on failure. */
bool spw_ipc_send(int socket, const void *data, size_t bytes, const int *fds, size_t count);

/* Receives exactly `bytes`, and at most `most` descriptors, which are close-on-exec. On failure
 * returns false; no descriptor stays open, and *ret_count is 0. */
bool spw_ipc_receive(int socket, void *ret_data, size_t bytes, int *ret_fds, size_t most,
                     size_t *ret_count);
