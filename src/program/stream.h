/* The identity of streams: number, context and device of a stream handle.
 *
 * A handle is identified once, with a few driver calls. The result is kept until the stream or
 * its context is destroyed. Each thread caches the streams that it used last. A loop over streams
 * that the program created therefore makes no driver call and takes no lock. A default stream
 * belongs to the current context. Each use of it therefore queries the driver for this context.
 *
 * Locking: spw_locks.streams; nothing is called with it held. */
#pragma once

#include <stdbool.h>

#include "device/contexts.h"

/* Returns the identity of `handle` on this thread. Returns NULL if the stream is unknown; the real
 * driver must then serve the call. `per_thread`: the program called a function with the suffix
 * _ptsz, for which handle NULL is the thread's own stream. The result is valid until the thread's
 * next call of this function. */
const struct spw_stream_info *spw_program_stream_get(CUstream handle, bool per_thread);

/* Returns the current context and its device, as spw_program_stream_get does for the legacy default
 * stream. */
const struct spw_stream_info *spw_program_stream_current(void);

/* Returns the ordinal of a context's device; a negative number if it is unknown. The context need
 * not be current. */
int spw_program_stream_ordinal(CUcontext context);

/* Removes a created stream that is about to be destroyed. Returns false if the stream was not
 * known. */
bool spw_program_stream_forget(CUstream handle, struct spw_stream_info *ret_info);

/* Removes one of the created streams of a context. Returns false if none is left. *cursor is 0 at
 * first. */
bool spw_program_stream_forget_one_of(CUcontext context, size_t *cursor,
                                      struct spw_stream_info *ret_info);

/* Removes a context. *ret_info is its legacy default stream. Returns false if the context was not
 * known. */
bool spw_program_stream_forget_context(CUcontext context, struct spw_stream_info *ret_info);

/* In a child after fork: empties the table. */
void spw_program_stream_reset(void);
