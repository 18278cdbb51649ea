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

#include "track/contexts.h"

/* What `handle` means on this thread; `per_thread`: in a function with the suffix _ptsz, where NULL
 * is the thread's own stream. NULL when it cannot be told: the real driver answers then. The result
 * is valid until the thread's next call of this function. */
const struct spw_stream_info *spw_track_stream_get(CUstream handle, bool per_thread);

/* The current context and its device: spw_track_stream_get of the legacy default stream. */
const struct spw_stream_info *spw_track_stream_current(void);

/* The device of a context, which need not be current; negative when it cannot be told. */
int spw_track_stream_ordinal(CUcontext context);

/* Forgets a created stream that is about to be destroyed; false when it was not known. */
bool spw_track_stream_forget(CUstream handle, struct spw_stream_info *ret_info);

/* Forgets one of the created streams of a context; false when none is left. */
bool spw_track_stream_forget_one_of(CUcontext context, struct spw_stream_info *ret_info);

/* Forgets a context; *ret_info is its legacy default stream. False when it was not known. */
bool spw_track_stream_forget_context(CUcontext context, struct spw_stream_info *ret_info);

/* In a child after fork: an empty table for the child. */
void spw_track_stream_reset(void);
