/* Blocks of other processes that are mapped here by spw_serve_cuIpcOpenMemHandle.
 *
 * Locking: takes spw_locks.imports. While this lock is held, no driver call is made, and nothing
 * waits. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"
#include "ipc/client.h"
#include "ipc/handle.h"

/* Opens once more a block that is already open in this context. Returns false if the block is not
 * open. */
bool spw_serve_imports_reopen(const struct spw_ipc_handle *handle, CUcontext context,
                              CUdeviceptr *ret_address);

/* Maps a block for the device of a context, and enters it in the table. Closes the descriptors in
 * `block`. If another thread has already entered the block, opens that entry once more. */
CUresult spw_serve_imports_map(const struct spw_ipc_handle *handle, CUcontext context, int ordinal,
                               struct spw_ipc_block *block, CUdeviceptr *ret_address);

/* Closes a block once. If this was the last close, waits for the context's work and unmaps the
 * block. Returns false if no block begins at the address; *ret_result is then not set. */
bool spw_serve_imports_close(CUdeviceptr address, CUresult *ret_result);

/* Finds the block that contains an address. Returns false if there is none. */
bool spw_serve_imports_find(CUdeviceptr address, CUdeviceptr *ret_base, size_t *ret_bytes);

/* Unmaps the blocks of a context that is about to be destroyed. The context's work must be
 * complete. */
void spw_serve_imports_end_context(CUcontext context);

/* In a child after fork: forgets all blocks. */
void spw_serve_imports_reset(void);
