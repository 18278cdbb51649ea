/* Calls of the program's functions: host functions, stream callbacks, destructors of user objects.
 * One thread (callback_thread.h) makes the calls one after the other, without the simulator's lock.
 *
 * Locking: the simulator's lock (core/lock.h) is held, unless stated otherwise. */
#pragma once

#include <stdbool.h>

#include <cuda.h>

/* One call, pending or done; reference counted. */
struct sim_call;

/* Posts `fn(data)`, or a stream callback, to the thread, which must have been started. Returns a
 * reference, or NULL if host memory is exhausted. */
struct sim_call *sim_callback_post(CUhostFn fn, void *data);
struct sim_call *sim_callback_post_stream(CUstreamCallback fn, CUstream stream, CUresult status,
                                          void *data);

/* sim_call_is_done(): true if the call has returned. sim_call_unref(): drops a reference. */
bool sim_call_is_done(const struct sim_call *call);
void sim_call_unref(struct sim_call *call);

/* True if calls are queued or running. */
bool sim_callback_is_pending(void);

/* Waits briefly for pending calls to return, so that short calls return at a fixed place in the
 * sequence of API calls. May release the lock while it waits. */
void sim_callback_settle(void);

/* Waits for the next call and makes it. Called on the callback thread without the lock; returns
 * with the lock held. */
void sim_callback_make(void);

/* True if the calling thread is the callback thread, on which CUDA calls are not permitted
 * (CUDA_ERROR_NOT_PERMITTED). Needs no lock. */
bool sim_callback_is_thread(void);
