/* The runtime's functions: noted for the thread, forwarded to the runtime that the caller would
 * have reached without us. Nothing is served here: lazy contexts, the last error and the current
 * device stay the runtime's. */
#include "driver/runtime_api.h"
#include "intercept/entry.h"
#include "track/process.h"
#include "intercept/library.h"
#include "intercept/resolve.h"
#include "track/stream.h"

#include <stddef.h>
#include <stdint.h>

/* ---- notes ---- */

static struct spw_track_call begin(enum spw_fn fn, const void *caller)
{
    struct spw_track_call outer = spw_track_call;

    spw_track_call = (struct spw_track_call){fn, caller, false};
    return outer;
}

/* Ends a note; what arrived within an inner call arrived within the outer one. */
static bool end(struct spw_track_call outer)
{
    bool arrived = spw_track_call.arrived;

    spw_track_call = outer;
    spw_track_call.arrived |= arrived;
    return arrived;
}

/* An allocation that no driver door saw: this runtime reaches the driver by another way. */
static void missed(void)
{
    const struct spw_stream_info *here = spw_track_serves() ? spw_track_stream_current() : NULL;

    if (here != NULL) {
        spw_counter_add(&spw_process.devices[here->ordinal].counters->runtime_missed, 1);
    }
}

/* ---- entries ---- */

/* Forwards a call under a note. Each entry is written out: its return address says who calls. */
#define SPW_NOTED(name, params, args, after)                                                       \
    SPW_EXPORT cudaError_t CUDARTAPI name params                                                   \
    {                                                                                              \
        const void *caller = __builtin_return_address(0);                                          \
        __typeof__(name) *real =                                                                   \
            (__typeof__(name) *)(uintptr_t)spw_intercept_library_function(SPW_FN_##name, caller);  \
        struct spw_track_call outer;                                                               \
        cudaError_t result;                                                                        \
        bool arrived;                                                                              \
                                                                                                   \
        if (real == NULL) {                                                                        \
            return cudaErrorSharedObjectSymbolNotFound;                                            \
        }                                                                                          \
        outer = begin(SPW_FN_##name, caller);                                                      \
        SPW_LIBRARY_CALL(result, SPW_FN_##name, real, args);                                       \
        arrived = end(outer);                                                                      \
        after(result, arrived, SPW_UNWRAP args);                                                   \
        return result;                                                                             \
    }

/* What is done when the real function has returned; the arguments are the call's own. */
#define SPW_UNWRAP(...)             __VA_ARGS__
#define SPW_AFTER_NOTE(...)         (void)arrived
#define SPW_AFTER_NOTE_ALLOC(...)   SPW_AFTER_ALLOC(__VA_ARGS__)
#define SPW_AFTER_NOTE_RESOLVE(...) SPW_AFTER_RESOLVE(__VA_ARGS__)
#define SPW_AFTER_ALLOC(result, arrived, address, ...)                                             \
    if (result == cudaSuccess && !arrived && *(address) != NULL) {                                 \
        missed();                                                                                  \
    }
#define SPW_AFTER_RESOLVE(result, arrived, name, address, ...)                                     \
    (void)arrived;                                                                                 \
    if (result == cudaSuccess && address != NULL && *(address) != NULL) {                          \
        *(address) = spw_intercept_resolve(*(address), name);                                      \
    }

#define SPW_FN(kind, symbol, base, since, flags, stream, params, args)
#define SPW_RUNTIME(kind, name, params, args) SPW_NOTED(name, params, args, SPW_AFTER_##kind)
#define SPW_REGISTER(...)
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_REGISTER
#undef SPW_NOTED
#undef SPW_UNWRAP
#undef SPW_AFTER_NOTE
#undef SPW_AFTER_NOTE_ALLOC
#undef SPW_AFTER_NOTE_RESOLVE
#undef SPW_AFTER_ALLOC
#undef SPW_AFTER_RESOLVE
