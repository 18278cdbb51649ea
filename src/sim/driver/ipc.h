/* Legacy IPC: memory of cuMemAlloc opened in another process.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include "sim/driver/block.h"

/* Unmaps memory opened by cuIpcOpenMemHandle, however often it was opened. */
void sim_ipc_close(struct sim_block *block);
