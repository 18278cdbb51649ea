/* A table of this process's exports: blocks that other processes may map, with the descriptors of
 * their chunks.
 *
 * Locking: the functions take spw_locks.exports. None of them waits while it holds the lock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/handle.h"
#include "ipc/message.h"
#include "ipc/state.h"

/* Returns true if there are exports. No lock. */
static inline bool spw_ipc_table_has_any(void)
{
    return atomic_load_explicit(&spw_ipc.exports.count, memory_order_relaxed) > 0;
}

/* An export. */
struct spw_ipc_export {
    uint64_t address; /* address of the block */
    uint64_t block;   /* id of the block */
    uint64_t offset;  /* offset of the block in the first chunk */
    uint64_t bytes;
    const void *context;    /* context of the block's allocation */
    size_t count;           /* number of chunks */
    const int *fds;         /* descriptors of the chunks; the table owns them after
                               spw_ipc_table_add */
    const uint64_t *chunks; /* sizes of the chunks */
};

/* Finds the export of a block, and sets `export_id` and `key` of the handle. Returns false if there
 * is none. */
bool spw_ipc_table_find(uint64_t address, uint64_t block, struct spw_ipc_handle *handle);

/* Adds an export, and sets `export_id` and `key` of the handle. Replaces an older export at the
 * same address. Returns false if there is no memory; the caller then still owns the descriptors. */
bool spw_ipc_table_add(const struct spw_ipc_export *export, struct spw_ipc_handle *handle);

/* Removes the export at an address, if there is one, and closes its descriptors. */
void spw_ipc_table_remove(uint64_t address);

/* Removes the exports of blocks that were allocated in a context; NULL: all exports. */
void spw_ipc_table_end_context(const void *context);

/* Answers a request on a connection. The answer contains the descriptors only if the key is
 * right. */
void spw_ipc_table_answer(const struct spw_ipc_request *request, int socket);
