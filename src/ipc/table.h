/* The exports of this process: blocks that others may map, with descriptors of their chunks.
 *
 * Locking: takes spw_locks.exports inside; no function waits under it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/handle.h"
#include "ipc/message.h"
#include "ipc/state.h"

/* True if there are exports. No lock. */
static inline bool spw_ipc_table_has_any(void)
{
    return atomic_load_explicit(&spw_ipc.exports.count, memory_order_relaxed) > 0;
}

/* An export. */
struct spw_ipc_export {
    uint64_t address; /* of the block */
    uint64_t block;   /* the block's id */
    uint64_t offset;  /* of the block in the first chunk */
    uint64_t bytes;
    const void *context; /* of the allocation */
    size_t count;        /* of chunks */
    const int *fds;      /* the chunks' descriptors; the table owns them after spw_ipc_table_add */
    const uint64_t *chunks; /* the chunks' sizes */
};

/* Finds the export of a block: fills in `export_id` and `key` of the handle. */
bool spw_ipc_table_find(uint64_t address, uint64_t block, struct spw_ipc_handle *handle);

/* Adds an export, in place of an older one at that address, and fills in `export_id` and `key`.
 * False without memory; then the caller still owns the descriptors. */
bool spw_ipc_table_add(const struct spw_ipc_export *export, struct spw_ipc_handle *handle);

/* Ends the export at an address, if there is one, and closes its descriptors. */
void spw_ipc_table_remove(uint64_t address);

/* Ends the exports of blocks that were allocated in a context; NULL: all exports. */
void spw_ipc_table_end_context(const void *context);

/* Answers a request on a connection, with the descriptors if the key is right. */
void spw_ipc_table_answer(const struct spw_ipc_request *request, int socket);
