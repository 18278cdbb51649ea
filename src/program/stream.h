/* The identity of streams: number, context and device of a stream handle.
 *
 * A handle is identified once, with a few driver calls, and remembered until its stream or context
 * is destroyed. Each thread caches the streams it used last, so that a loop over streams that the
 * program created makes no driver call and takes no lock. A default stream belongs to the current
 * context, which the driver is asked for each time.
 *
 * Locking: spw_locks.streams; nothing is called with it held. */
#pragma once

#include <stdbool.h>

#include "device/contexts.h"

/* The identity of `handle` on this thread; NULL when the stream is unknown, and the real driver has
 * to answer. `per_thread`: the program called a function with the suffix _ptsz, where handle NULL
 * is the thread's own stream. The result is valid until the thread's next call of this function. */
const struct spw_stream_info *spw_program_stream_get(CUstream handle, bool per_thread);

/* The current context and its device: spw_program_stream_get of the legacy default stream. */
const struct spw_stream_info *spw_program_stream_current(void);

/* The ordinal of a context's device; negative when it is unknown. The context need not be current.
 */
int spw_program_stream_ordinal(CUcontext context);

/* Forgets a created stream that is about to be destroyed; false when it was not known. */
bool spw_program_stream_forget(CUstream handle, struct spw_stream_info *ret_info);

/* Forgets one of the created streams of a context; false when none is left. *cursor begins as 0. */
bool spw_program_stream_forget_one_of(CUcontext context, size_t *cursor,
                                      struct spw_stream_info *ret_info);

/* Forgets a context; *ret_info is its legacy default stream. False when it was not known. */
bool spw_program_stream_forget_context(CUcontext context, struct spw_stream_info *ret_info);

/* In a child after fork: empties the table. */
void spw_program_stream_reset(void);
