/* Sharing of blocks with other processes: their handles, and the socket that passes their chunks.
 * It does not know CUDA.
 *
 *   client    asks another process for the chunks of a block
 *   handle    the 64 bytes that name an exported block
 *   message   requests and answers on the socket
 *   server    the thread that answers the requests of other processes
 *   state     the state of the folder in one object
 *   table     the exports of this process, with the descriptors of their chunks
 *
 * A program gets a handle from cuIpcGetMemHandle and passes it to another process. The handle names
 * the exporting process and the export. It has a random key, which that process demands. No
 * locking: values only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SPW_IPC_HANDLE_BYTES = 64, SPW_IPC_KEY_BYTES = 16, SPW_IPC_VERSION = 1 };

struct spw_ipc_handle {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    uint64_t start;     /* of the process, in clock ticks since boot */
    uint64_t name;      /* random: part of the socket's name */
    uint64_t export_id; /* from 1; no number is used twice */
    uint8_t key[SPW_IPC_KEY_BYTES];
    uint8_t zero[8];
};

_Static_assert(sizeof(struct spw_ipc_handle) == SPW_IPC_HANDLE_BYTES, "it fills CUDA's handle");

/* Fills `bytes` of `data` with random bytes. False when the system has none. */
bool spw_ipc_random(void *data, unsigned bytes);

/* True if the handle is spillway's own, of any version. */
bool spw_ipc_handle_is_ours(const struct spw_ipc_handle *handle);

/* True if this process is the one that the handle names. */
bool spw_ipc_handle_is_mine(const struct spw_ipc_handle *handle);

/* Fills in the magic, version, pid and start of this process. */
void spw_ipc_handle_init(struct spw_ipc_handle *handle);
