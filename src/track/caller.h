/* The library that asks for memory, found by a return address.
 *
 * Most requests come from few places, so the answer is kept for each return address: a request
 * costs one look at a table, and only the first one from a place asks the dynamic loader. A library
 * that is loaded where another one was may keep the other's answer. A library that jumps to the
 * driver as the last act of a function is not seen: its caller is.
 *
 * Locking: none; spw_track_caller_learn must be called without a lock, since it asks the loader. */
#pragma once

#include "track/process.h"

enum spw_caller {
    SPW_CALLER_OTHER,
    SPW_CALLER_SHARES,  /* gives its memory to other processes; see callers.def */
    SPW_CALLER_PYTORCH, /* PyTorch's native allocator */
};

/* The return address of the program's call of the driver, as the handler's entry saw it: in the
 * program, or in the CUDA runtime that is linked with it. Handlers read it before anything else. */
extern _Thread_local const void *spw_track_entered __attribute__((tls_model("initial-exec")));

enum { SPW_CALLERS_BITS = 8, SPW_CALLERS_KIND_BITS = 2 };

/* Return addresses, each with its kind in the lowest bits. */
extern _Atomic uint64_t spw_track_callers[1 << SPW_CALLERS_BITS];

static inline size_t spw_track_caller_place(uint64_t address)
{
    return (size_t)(address * 0x9e3779b97f4a7c15u >> (64 - SPW_CALLERS_BITS));
}

/* Finds the kind of the library at `address`, and keeps it. */
enum spw_caller spw_track_caller_learn(uint64_t address);

/* The kind of the library that made the call under way: of the runtime if it is one, else of the
 * driver. */
static inline enum spw_caller spw_track_caller(void)
{
    const void *caller =
        spw_track_call.fn != SPW_FN_COUNT ? spw_track_call.caller : spw_track_entered;
    uint64_t address = (uint64_t)(uintptr_t)caller;
    uint64_t known = atomic_load_explicit(&spw_track_callers[spw_track_caller_place(address)],
                                          memory_order_relaxed);

    return SPW_LIKELY(known >> SPW_CALLERS_KIND_BITS == address)
               ? (enum spw_caller)(known & ((1 << SPW_CALLERS_KIND_BITS) - 1))
               : spw_track_caller_learn(address);
}
