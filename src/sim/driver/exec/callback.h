/* The thread that calls the program back: host functions, stream callbacks, destructors of user
 * objects. It runs them one after the other, without the simulator's lock.
 *
 * Locking: the simulator's lock (core/lock.h) is held, unless said otherwise. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

/* One call, on its way or done; counted by reference. */
struct sim_call;

/* Starts the thread if it does not run yet. CUDA_ERROR_OPERATING_SYSTEM. */
CUresult sim_callback_start(void);

/* Hands `fn(data)`, or a stream callback, to the thread, which was started. A reference, or NULL
 * when host memory is out. */
struct sim_call *sim_callback_post(CUhostFn fn, void *data);
struct sim_call *sim_callback_post_stream(CUstreamCallback fn, CUstream stream, CUresult status,
                                          void *data);

/* True if the call has returned; drops a reference. */
bool sim_call_is_done(const struct sim_call *call);
void sim_call_unref(struct sim_call *call);

/* True if calls are queued or running. */
bool sim_callback_is_pending(void);

/* Gives calls on their way a moment to return, so that short ones do so at a fixed place in the
 * order of things. The lock may be released meanwhile. */
void sim_callback_settle(void);

/* True on the thread that the callbacks run on, where CUDA calls are not permitted
 * (CUDA_ERROR_NOT_PERMITTED). Needs no lock. */
bool sim_callback_is_thread(void);
