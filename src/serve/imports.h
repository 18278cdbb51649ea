/* Blocks of other processes that are mapped here, by spw_serve_cuIpcOpenMemHandle.
 *
 * Locking: spw_locks.imports, inside; nothing waits under it, and no driver call is made. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_api.h"
#include "ipc/client.h"
#include "ipc/handle.h"

/* Opens a block that was opened in this context before once more. False when it was not. */
bool spw_serve_imports_reopen(const struct spw_ipc_handle *handle, CUcontext context,
                              CUdeviceptr *ret_address);

/* Maps a block for the device of a context, and enters it; the descriptors in `block` are closed.
 * If another thread has entered it meanwhile, that one is opened once more. */
CUresult spw_serve_imports_map(const struct spw_ipc_handle *handle, CUcontext context, int ordinal,
                               struct spw_ipc_block *block, CUdeviceptr *ret_address);

/* Closes a block once. After the last time it waits for the context's work and unmaps the block.
 * False when none begins at the address: *ret_result is not set. */
bool spw_serve_imports_close(CUdeviceptr address, CUresult *ret_result);

/* Finds the block that contains an address. */
bool spw_serve_imports_find(CUdeviceptr address, CUdeviceptr *ret_base, size_t *ret_bytes);

/* A context is about to be destroyed, its work is complete: unmaps its blocks. */
void spw_serve_imports_end_context(CUcontext context);

/* In a child after fork: forgets all. */
void spw_serve_imports_reset(void);
