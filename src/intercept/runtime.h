/* Calls of the CUDA runtime while they are under way.
 *
 * The entry of a runtime function notes the call for the thread and forwards it. So the driver's
 * handlers know which function of the runtime the program called. The runtime still manages lazy
 * contexts, the last error and the current device. No locks: the notes belong to the thread. */
#pragma once

#include "intercept/library.h"
#include "process/process.h"

/* The calls that were under way on the thread when an inner one began. */
struct spw_runtime_call {
    struct spw_outer_call outer;
    struct spw_library_call outer_library;
};

/* Notes a call of row `fn` that goes to the function at `real`. `caller` is the return address, and
 * `frame` is the frame of the entry. */
static inline void spw_intercept_runtime_begin(struct spw_runtime_call *ret_call, enum spw_fn fn,
                                               const void *caller, const void *frame,
                                               const void *real)
{
    ret_call->outer = spw_process_outer;
    spw_process_outer = (struct spw_outer_call){fn, caller, frame, NULL};
    ret_call->outer_library = spw_intercept_library_begin(fn, real);
}

/* Ends the call. True if it called an entry of the driver; then the outer call did so as well. */
static inline bool spw_intercept_runtime_end(const struct spw_runtime_call *call)
{
    const void *entered = spw_process_outer.entered;

    spw_intercept_library_end(call->outer_library);
    spw_process_outer = call->outer;
    if (entered != NULL) {
        spw_process_outer.entered = entered;
    }
    return entered != NULL;
}

/* Counts an allocation of the runtime that called no entry of the driver (runtime_missed of the
 * current device). Such a runtime reaches the driver in a way that spillway does not intercept. */
void spw_intercept_runtime_count_missed(void);
