/* A child after fork: the driver does not work there, and our locks and pools are the parent's.
 *
 * The handlers take every lock of this layer and of the pools around the fork, in the order of
 * hook.h; the child forgets everything without a call to the device and passes all calls until it
 * initialises CUDA itself. */
#pragma once

/* Registers the handlers, once per process. Caller holds spw_locks.process. */
void spw_intercept_fork_watch(void);
