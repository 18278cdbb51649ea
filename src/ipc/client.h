/* Asks another process for the chunks of a block that it exports.
 *
 * No lock is taken, and none may be held: the call waits for the other process, at most for
 * SPW_IPC_WAIT_NS. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ipc/handle.h"

#define SPW_IPC_WAIT_NS (UINT64_C(5) * 1000 * 1000 * 1000)

/* The chunks of a block, in the order of their addresses. */
struct spw_ipc_block {
    uint64_t offset; /* of the block in the first chunk */
    uint64_t bytes;  /* of the block */
    size_t count;
    int *fds;         /* the chunks' descriptors */
    uint64_t *chunks; /* the chunks' sizes */
};

enum spw_ipc_reply {
    SPW_IPC_GOT,
    SPW_IPC_GONE,   /* no such process, or it belongs to another user */
    SPW_IPC_SILENT, /* it did not answer in time, or not as expected */
    SPW_IPC_DENIED, /* it knows no such export, or the key is wrong */
    SPW_IPC_NO_ROOM /* no memory, or no descriptor, is free in this process */
};

/* Gets the chunks. On success the caller ends the block with spw_ipc_block_fini. */
enum spw_ipc_reply spw_ipc_fetch(const struct spw_ipc_handle *handle,
                                 struct spw_ipc_block *ret_block);

/* Closes the descriptors that are left (not -1) and frees the arrays. */
void spw_ipc_block_fini(struct spw_ipc_block *block);
