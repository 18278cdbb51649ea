/* Finds the library that asks for memory, by a return address.
 *
 * Most requests come from few places in the code. The kind of library is therefore stored for each
 * return address. A request usually costs one comparison or one table look-up; only the first
 * request from a place calls the dynamic loader. If a library is loaded where another one was
 * unloaded, it may get the kind of the unloaded library. If a library ends a function by a jump to
 * the driver (tail call), the function's caller is found instead of the library.
 *
 * Locking: none. No lock may be held, because the loader is called. */
#pragma once

#include "process/process.h"

enum spw_caller {
    SPW_CALLER_OTHER,
    SPW_CALLER_SHARES,  /* shares its memory with other processes; see callers.def */
    SPW_CALLER_PYTORCH, /* PyTorch's native allocator */
};

/* The last return address on this thread that belongs to a library of kind SPW_CALLER_OTHER. */
extern _Thread_local const void *spw_process_caller_other
    __attribute__((tls_model("initial-exec")));

/* The slow path of spw_process_caller. */
enum spw_caller spw_process_caller_find(const void *address);

/* Returns the kind of the library that made the current call. That is the library that called the
 * runtime's function or, if no runtime function was called, the driver's. Handlers call this
 * first. */
static inline enum spw_caller spw_process_caller(void)
{
    const void *address =
        spw_process_outer.fn != SPW_FN_COUNT ? spw_process_outer.caller : spw_process_outer.entered;

    return SPW_LIKELY(address == spw_process_caller_other) ? SPW_CALLER_OTHER
                                                           : spw_process_caller_find(address);
}
