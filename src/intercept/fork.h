/* Handlers for fork. The driver does not work in a child, and the child's pools are copies of the
 * parent's.
 *
 * During a fork, the handlers hold the locks of system/lock.def, except those of SPW_LOCK_ALONE.
 * The child forgets all state without a driver call. The child's calls go to the driver until the
 * child itself initialises CUDA. */
#pragma once

/* Registers the handlers, once per process. Caller holds spw_locks.process. */
void spw_intercept_fork_watch(void);
