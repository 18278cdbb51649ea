/* The call site of a request.
 *
 * To be called without a lock, because a new call stack is walked (callsite/capture.h). */
#pragma once

#include "callsite/capture.h"
#include "process/process.h"

/* Returns the number of the call site of the program's call; 0 if unknown. `api` is the driver's
 * function. If the call came through the runtime, the runtime's function is recorded instead. */
static inline uint32_t spw_call_site(const char *api)
{
    if (!spw_callsite_captures()) {
        return 0;
    }
    return spw_callsite_capture(
        spw_process_outer.fn == SPW_FN_COUNT ? api : spw_driver_symbol(spw_process_outer.fn));
}
