/* Streams as the pool knows them: which stream, context and device a handle of the program means.
 *
 * A handle is identified once, with a few driver calls, and remembered until its stream or context
 * is destroyed. Each thread keeps the streams it used last, so that a steady loop makes no driver
 * call and takes no lock for a stream the program created; a default stream belongs to the current
 * context, which is asked for each time.
 *
 * Locking: a mutex inside; nothing is called with it held. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"
#include "pool/vm_ops.h"

/* A stream and the device it is of. */
struct spw_stream_info {
    struct spw_stream stream;
    int ordinal;
};

/* What `handle` means on this thread; `per_thread`: in a function with the suffix _ptsz, where NULL
 * is the thread's own stream. NULL when it cannot be told: the real driver answers then. The result
 * is valid until the thread's next call of this function. */
const struct spw_stream_info *spw_track_stream_get(CUstream handle, bool per_thread);

/* The current context and its device: spw_track_stream_get of the legacy default stream. */
const struct spw_stream_info *spw_track_stream_current(void);

/* The device of a context, which need not be current; negative when it cannot be told. */
int spw_track_stream_ordinal(CUcontext context);

/* A stream is about to be destroyed: the pools settle what was freed on it, and it is forgotten. */
void spw_track_stream_retire(CUstream handle);

/* The same for every stream of a context, and the context itself. `gone`: it was destroyed already,
 * and nothing of it can be settled any more. */
void spw_track_stream_retire_context(CUcontext context, bool gone);

/* Steps through the contexts of a device that were seen and are not gone: the one behind *cursor (0
 * to begin with), or NULL. Caller holds spw_process.lock. */
CUcontext spw_track_stream_next_context(int ordinal, size_t *cursor);

/* How many they are. Caller holds the lock of the next two functions. */
size_t spw_stream_contexts(int ordinal);

/* Keeps streams and contexts from being learnt or forgotten. */
void spw_track_stream_lock(void);
void spw_track_stream_unlock(void);

/* For fork: an empty table for the child. */
void spw_track_stream_reset(void);
