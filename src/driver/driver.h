/* The real driver: typed pointers to every function of functions.def and calls.def, taken from the
 * handle of libcuda.so.1, and the scope in which spillway calls them for itself.
 *
 * Locking: none. A struct spw_driver does not change once it is open, but for its atomics; the
 * scope is the calling thread's. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* Every row of functions.def, in its order. */
enum spw_fn {
#define SPW_FN(kind, symbol, base, since, flags, stream, params, args) SPW_FN_##symbol,
#define SPW_RUNTIME(kind, symbol, params, args)                        SPW_FN_##symbol,
#define SPW_REGISTER(library, result, symbol, ...)                     SPW_FN_##symbol,
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_REGISTER
    SPW_FN_COUNT
};

/* Every row of calls.def: the slots of the counters of our own calls. */
enum spw_call {
#define SPW_CALL(symbol)        SPW_CALL_##symbol,
#define SPW_CALL_HOOKED(symbol) SPW_CALL_##symbol,
#include "driver/calls.def"
#undef SPW_CALL
#undef SPW_CALL_HOOKED
    SPW_CALL_COUNT
};

enum { SPW_DRIVER_DEVICES = 64, SPW_DRIVER_SLOTS = 2048 };

/* Pointers of functions.def are never NULL: a function that this driver lacks answers
 * CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND. Those of calls.def may be NULL. */
struct spw_driver {
#define SPW_FN(kind, symbol, base, since, flags, stream, params, args) __typeof__(symbol) *symbol;
#define SPW_RUNTIME(kind, symbol, params, args)
#define SPW_REGISTER(...)
#include "driver/functions.def"
#undef SPW_FN
#undef SPW_RUNTIME
#undef SPW_REGISTER
#define SPW_CALL(symbol) __typeof__(symbol) *symbol;
#define SPW_CALL_HOOKED(symbol)
#include "driver/calls.def"
#undef SPW_CALL
#undef SPW_CALL_HOOKED
    /* There on the project's simulated GPU only, else NULL. The second tells how much content of
     * memory was dropped for want of room (sim/driver/memory/payload.h). */
    int (*simulated)(void);
    unsigned long long (*simulated_payload)(unsigned long long *ret_dropped);
    /* Stream captures open in the process. While there are any, our own calls are relaxed. */
    _Atomic int captures_open;
    /* Where our own calls are counted: SPW_CALL_COUNT counters per device; NULL: not counted. Set
     * before the device is first used. */
    _Atomic uint64_t *calls[SPW_DRIVER_DEVICES];
    /* Hash table from the addresses of the real functions to their rows. */
    struct {
        const void *address;
        enum spw_fn fn;
    } slots[SPW_DRIVER_SLOTS];
};

/* Takes the functions of the loaded libcuda.so.1; `load`: loads it when nobody has. NULL when it is
 * not loaded, or cannot be. The result is the caller's; the library stays loaded for good. */
struct spw_driver *spw_driver_open(bool load);

/* Frees what spw_driver_open returned, for a caller that finds somebody else was faster. */
void spw_driver_discard(struct spw_driver *driver);

/* A driver whose functions all answer CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: what calls are
 * passed to when there is no libcuda.so.1. Static storage. */
struct spw_driver *spw_driver_absent(void);

/* The row whose real function is at `address`, however it was looked up; SPW_FN_COUNT if none. */
enum spw_fn spw_driver_find(const struct spw_driver *driver, const void *address);

/* The exported name of a row; static storage. */
const char *spw_driver_symbol(enum spw_fn fn);

/* The row of the exported name `symbol`; SPW_FN_COUNT if there is none. */
enum spw_fn spw_driver_row(const char *symbol);

/* Whether cuGetProcAddress is asked for `base` by any row. */
bool spw_driver_knows(const char *base);

/* The exported name of one of our own calls; static storage. */
const char *spw_driver_call_name(enum spw_call call);

/* The calling thread's scope of our own calls: while it is open, our exported functions, should the
 * driver reach them, pass straight through, and an unsafe call leaves everybody's captures valid.
 */
struct spw_driver_scope {
    int depth;
    bool relaxed;
    CUstreamCaptureMode mode; /* to put back, while relaxed */
};

extern _Thread_local struct spw_driver_scope spw_driver_scope
    __attribute__((tls_model("initial-exec")));

static inline bool spw_driver_inside(void)
{
    return spw_driver_scope.depth != 0;
}

/* Counts one of our own calls for device `ordinal`; negative: for none. */
static inline void spw_driver_count(struct spw_driver *driver, int ordinal, enum spw_call call)
{
    if (ordinal >= 0 && ordinal < SPW_DRIVER_DEVICES && driver->calls[ordinal] != NULL) {
        atomic_fetch_add_explicit(&driver->calls[ordinal][call], 1, memory_order_relaxed);
    }
}

/* The rare halves of a scope: exchange the thread's capture mode, and put it back. */
void spw_driver_relax(struct spw_driver *driver, int ordinal);
void spw_driver_restore(struct spw_driver *driver, int ordinal);

/* Opens a scope; scopes nest, and only the outermost exchanges the capture mode. */
static inline void spw_driver_begin(struct spw_driver *driver, int ordinal)
{
    if (spw_driver_scope.depth++ == 0 &&
        atomic_load_explicit(&driver->captures_open, memory_order_relaxed) > 0) {
        spw_driver_relax(driver, ordinal);
    }
}

static inline void spw_driver_end(struct spw_driver *driver, int ordinal)
{
    if (spw_driver_scope.depth == 1 && spw_driver_scope.relaxed) {
        spw_driver_restore(driver, ordinal);
    }
    spw_driver_scope.depth--;
}

static inline void spw_driver_enter(struct spw_driver *driver, int ordinal, enum spw_call call)
{
    spw_driver_begin(driver, ordinal);
    spw_driver_count(driver, ordinal, call);
}

static inline CUresult spw_driver_leave(struct spw_driver *driver, int ordinal, CUresult result)
{
    spw_driver_end(driver, ordinal);
    return result;
}

/* One call of our own, counted and in a scope of its own:
 *     result = SPW_DRIVER_CALL(driver, ordinal, cuMemCreate, &handle, bytes, &properties, 0);
 * The function is a row of calls.def and not NULL; the arguments make no such call themselves. */
#define SPW_DRIVER_CALL(driver, ordinal, fn, ...)                                                  \
    spw_driver_leave(                                                                              \
        (driver), (ordinal),                                                                       \
        (spw_driver_enter((driver), (ordinal), SPW_CALL_##fn), (driver)->fn(__VA_ARGS__)))

/* The same for a function without arguments. */
#define SPW_DRIVER_CALL0(driver, ordinal, fn)                                                      \
    spw_driver_leave((driver), (ordinal),                                                          \
                     (spw_driver_enter((driver), (ordinal), SPW_CALL_##fn), (driver)->fn()))
