/* The call site of a request.
 *
 * To be called without a lock: a new call stack is walked (callsite/capture.h). */
#pragma once

#include "callsite/capture.h"
#include "process/process.h"

/* The number of the call site of the program's call; 0: unknown. `api` is the driver's function; a
 * call that came through the runtime is recorded under the runtime's function. */
static inline uint32_t spw_call_site(const char *api)
{
    if (!spw_callsite_captures()) {
        return 0;
    }
    return spw_callsite_capture(
        spw_process_outer.fn == SPW_FN_COUNT ? api : spw_driver_symbol(spw_process_outer.fn));
}
