/* Calls of the CUDA runtime while they are in progress.
 *
 * The entry of a runtime function records the call for the thread and forwards it. The driver's
 * handlers then know which function of the runtime the program called. The runtime still manages
 * lazy contexts, the last error and the current device. No locks: each record belongs to its
 * thread. */
#pragma once

#include "intercept/library.h"
#include "process/process.h"

/* The calls that were in progress on the thread when an inner call began. */
struct spw_runtime_call {
    struct spw_outer_call outer;
    struct spw_library_call outer_library;
};

/* Records a call of row `fn` that goes to the function at `real`. `caller` is the return address,
 * and `frame` is the frame of the entry. */
static inline void spw_intercept_runtime_begin(struct spw_runtime_call *ret_call, enum spw_fn fn,
                                               const void *caller, const void *frame,
                                               const void *real)
{
    ret_call->outer = spw_process_outer;
    spw_process_outer = (struct spw_outer_call){fn, caller, frame, NULL};
    ret_call->outer_library = spw_intercept_library_begin(fn, real);
}

/* Ends the call. Returns true if the call reached an entry of the driver. In that case, the
 * enclosing call counts as having reached one as well. */
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

/* Counts an allocation of the runtime that reached no entry of the driver (runtime_missed of the
 * current device). Such a runtime calls the driver in a way that spillway does not intercept. */
void spw_intercept_runtime_count_missed(void);
