/* Sharing of blocks with other processes: their handles, and the socket that passes their chunks.
 * It does not know CUDA.
 *
 *   client    requests the chunks of a block from another process
 *   handle    the 64 bytes that name an exported block
 *   message   requests and answers on the socket
 *   server    the thread that answers the requests of other processes
 *   state     the state of the folder in one object
 *   table     the exports of this process, with the descriptors of their chunks
 *
 * A program gets a handle from cuIpcGetMemHandle and passes it to another process. The handle names
 * the exporting process and the export. It also contains a random key, without which the exporting
 * process refuses requests. No locking: values only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SPW_IPC_HANDLE_BYTES = 64, SPW_IPC_KEY_BYTES = 16, SPW_IPC_VERSION = 1 };

struct spw_ipc_handle {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    uint64_t start;     /* start of the process, in clock ticks since boot */
    uint64_t name;      /* random number that is part of the socket's name */
    uint64_t export_id; /* number of the export, from 1; no number is used twice */
    uint8_t key[SPW_IPC_KEY_BYTES];
    uint8_t zero[8];
};

_Static_assert(sizeof(struct spw_ipc_handle) == SPW_IPC_HANDLE_BYTES, "it fills CUDA's handle");

/* Fills `bytes` of `data` with random bytes. Returns false if the system has none. */
bool spw_ipc_random(void *data, unsigned bytes);

/* Returns true if the handle was made by spillway, in any version. */
bool spw_ipc_handle_is_ours(const struct spw_ipc_handle *handle);

/* Returns true if the handle names this process. */
bool spw_ipc_handle_is_mine(const struct spw_ipc_handle *handle);

/* Sets the magic, the version, and the pid and start of this process. */
void spw_ipc_handle_init(struct spw_ipc_handle *handle);
