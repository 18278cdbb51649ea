/* The thread that answers other processes which want to map exported blocks.
 *
 * It is started at the first export only. It blocks all signals, makes no CUDA call, and takes no
 * lock but that of the exports. It ends with the process; nobody waits for it. Its socket has no
 * file: the kernel removes it with the process, however that ends. A child after fork has no such
 * thread and no exports.
 *
 * Locking: spw_locks.exporting is held by the caller of start. */
#pragma once

#include <stdbool.h>

#include "ipc/handle.h"

/* Starts a detached thread in which all signals are blocked. False when there can be none. */
typedef bool spw_ipc_start_thread(void *(*run)(void *argument), void *argument);

/* Starts the thread, unless it runs, and fills in the process and the socket's name in the handle.
 * False when the system refuses. */
bool spw_ipc_server_start(spw_ipc_start_thread *start, struct spw_ipc_handle *handle);

/* In a child after fork: closes the parent's socket and forgets the exports, which are the
 * parent's. */
void spw_ipc_server_forget(void);
