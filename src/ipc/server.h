/* The thread that answers requests of other processes to map exported blocks.
 *
 * The first export starts the thread. The thread blocks all signals and makes no CUDA call. The
 * only lock that it takes is that of the exports. It ends with the process, and is never joined.
 * Its socket has no file, so the kernel removes the socket however the process ends. A child after
 * fork has no such thread and no exports.
 *
 * Locking: the caller of spw_ipc_server_start holds spw_locks.exporting. */
#pragma once

#include <stdbool.h>

#include "ipc/handle.h"

/* Starts a detached thread with all signals blocked. Returns false if the thread cannot be
 * started. */
typedef bool spw_ipc_start_thread(void *(*run)(void *argument), void *argument);

/* Starts the thread, unless it is already running. Sets the process and the socket's name in the
 * handle. Returns false if the system refuses. */
bool spw_ipc_server_start(spw_ipc_start_thread *start, struct spw_ipc_handle *handle);

/* In a child after fork: closes the parent's socket, and forgets the exports of the parent. */
void spw_ipc_server_forget(void);
