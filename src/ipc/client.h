/* Requests the chunks of a block from the process that exports it.
 *
 * No lock is taken, and none may be held, because the call waits at most SPW_IPC_WAIT_NS for the
 * other process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ipc/handle.h"

#define SPW_IPC_WAIT_NS (UINT64_C(5) * 1000 * 1000 * 1000)

/* The chunks of a block, in the order of their addresses. */
struct spw_ipc_block {
    uint64_t offset; /* offset of the block in the first chunk */
    uint64_t bytes;  /* size of the block */
    size_t count;
    int *fds;         /* file descriptors of the chunks */
    uint64_t *chunks; /* sizes of the chunks */
};

enum spw_ipc_reply {
    SPW_IPC_GOT,
    SPW_IPC_GONE,   /* the process does not exist, or belongs to another user */
    SPW_IPC_SILENT, /* the process did not answer in time, or its answer was not valid */
    SPW_IPC_DENIED, /* the process knows no such export, or the key is wrong */
    SPW_IPC_NO_ROOM /* this process has no memory or no file descriptor left */
};

/* Gets the chunks of a block. After success, the caller must call spw_ipc_block_fini. */
enum spw_ipc_reply spw_ipc_fetch(const struct spw_ipc_handle *handle,
                                 struct spw_ipc_block *ret_block);

/* Closes all descriptors that are not -1, and frees the arrays. */
void spw_ipc_block_fini(struct spw_ipc_block *block);
