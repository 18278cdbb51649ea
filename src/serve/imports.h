/* Blocks of other processes that are mapped here, by spw_serve_cuIpcOpenMemHandle.
 *
 * Locking: takes spw_locks.imports, and makes no driver call and waits for nothing while it is
 * held. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"
#include "ipc/client.h"
#include "ipc/handle.h"

/* Opens once more a block that is open in this context. False when it is not open. */
bool spw_serve_imports_reopen(const struct spw_ipc_handle *handle, CUcontext context,
                              CUdeviceptr *ret_address);

/* Maps a block for the device of a context, and enters it; the descriptors in `block` are closed.
 * If another thread has entered it first, opens that entry once more. */
CUresult spw_serve_imports_map(const struct spw_ipc_handle *handle, CUcontext context, int ordinal,
                               struct spw_ipc_block *block, CUdeviceptr *ret_address);

/* Closes a block once. After the last time it waits for the context's work and unmaps the block.
 * False when none begins at the address; *ret_result is not valid then. */
bool spw_serve_imports_close(CUdeviceptr address, CUresult *ret_result);

/* Finds the block that contains an address. */
bool spw_serve_imports_find(CUdeviceptr address, CUdeviceptr *ret_base, size_t *ret_bytes);

/* Unmaps the blocks of a context that is about to be destroyed. Its work is complete. */
void spw_serve_imports_end_context(CUcontext context);

/* In a child after fork: forgets all. */
void spw_serve_imports_reset(void);
