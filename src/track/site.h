/* Who asks: the call site of a request, as the layers of the hook pass it on.
 *
 * No locking of its own; called without any lock, since a stack that is seen for the first time is
 * walked (see callsite/capture.h). */
#pragma once

#include "track/process.h"
#include "callsite/capture.h"

/* The site of a call of the program; `api` is the driver's function, and the runtime's is named
 * instead where the call came from there. 0: not known. */
static inline uint32_t spw_track_site(const char *api)
{
    return spw_callsite_capture(
        spw_track_call.fn == SPW_FN_COUNT ? api : spw_driver_symbol(spw_track_call.fn));
}
