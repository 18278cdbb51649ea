/* The thread that answers requests of other processes to map exported blocks.
 *
 * The first export starts it. It blocks all signals, makes no CUDA call, and takes no lock but that
 * of the exports. It ends with the process, and is never joined. Its socket has no file: the kernel
 * removes the socket at any end of the process. A child after fork has no such thread and no
 * exports.
 *
 * Locking: spw_locks.exporting is held by the caller of start. */
#pragma once

#include <stdbool.h>

#include "ipc/handle.h"

/* Starts a detached thread with all signals blocked. False when none can be started. */
typedef bool spw_ipc_start_thread(void *(*run)(void *argument), void *argument);

/* Starts the thread, unless it runs, and fills in the process and the socket's name in the handle.
 * False when the system refuses. */
bool spw_ipc_server_start(spw_ipc_start_thread *start, struct spw_ipc_handle *handle);

/* In a child after fork: closes the parent's socket and forgets the exports, which are the
 * parent's. */
void spw_ipc_server_forget(void);
