/* The library that asks for memory, found by a return address.
 *
 * Most requests come from few places, so the answer is kept for each return address. A request
 * costs a comparison or one look at a table, and only the first request from a place calls the
 * dynamic loader. A library that is loaded where an unloaded one was may get the old answer. A
 * library that jumps to the driver at the end of a function (tail call) is not seen: the function's
 * caller is taken instead.
 *
 * Locking: none; no lock may be held, since the loader is called. */
#pragma once

#include "process/process.h"

enum spw_caller {
    SPW_CALLER_OTHER,
    SPW_CALLER_SHARES,  /* gives its memory to other processes; see callers.def */
    SPW_CALLER_PYTORCH, /* PyTorch's native allocator */
};

/* The last return address on this thread that was found in a library of kind SPW_CALLER_OTHER. */
extern _Thread_local const void *spw_process_caller_other
    __attribute__((tls_model("initial-exec")));

/* The slow path of spw_process_caller. */
enum spw_caller spw_process_caller_find(const void *address);

/* The kind of the library that made the call under way: the caller of the runtime's function or,
 * without one, of the driver's. Handlers call this first. */
static inline enum spw_caller spw_process_caller(void)
{
    const void *address =
        spw_process_outer.fn != SPW_FN_COUNT ? spw_process_outer.caller : spw_process_outer.entered;

    return SPW_LIKELY(address == spw_process_caller_other) ? SPW_CALLER_OTHER
                                                           : spw_process_caller_find(address);
}
