/* The real driver as a typed struct, and the list of the functions that are intercepted. It does
 * not know the pool.
 *
 *   calls          driver functions that spillway itself calls
 *   cuda_api       cuda.h with every function under its exported name
 *   dl             the real dlsym and dlvsym, for the look-ups of spillway
 *   driver         pointers to the real functions, and the scope of spillway's own calls
 *   functions      every intercepted function, one row for each, and the reader of the rows
 *   host_memory    how much memory the machine and its control groups have
 *   host_nodes     NUMA nodes that can hold memory for devices
 *   host_place     tries in helper processes where the driver can create host chunks
 *   host_rights    what the process may do with host memory
 *   host_verdict   stores the result of host_place for later processes
 *   libc           finds the C library's own version of functions that spillway exports
 *   one_memory     finds out whether device and host have one memory
 *   register_api   functions that register device memory with other libraries
 *   runtime_api    cuda_runtime_api.h with every function under its exported name
 *   submit         the rows of the functions that enqueue work on a stream
 *   submit_rows    writes submit.def from cuda.h, and checks it
 *
 * The struct has the pointers of functions.def and calls.def, from the handle of libcuda.so.1.
 * Locking: none. A struct spw_driver is constant after it was opened, except its atomic members.
 * The scope belongs to the calling thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/bounds.h"
#include "driver/cuda_api.h"
#include "system/clock.h"

/* The rows of functions.def, in the order of the file. */
enum spw_fn {
#define SPW_EACH(symbol) SPW_FN_##symbol,
#include "driver/functions.def"
    SPW_FN_COUNT
};

/* The rows of calls.def. They are the indices of the counters of spillway's own calls. */
enum spw_own_call {
#define SPW_CALL_EACH(symbol) SPW_CALL_##symbol,
#include "driver/calls.def"
    SPW_CALL_COUNT
};

enum { SPW_DRIVER_SLOTS = 2048 };

/* The pointers of functions.def are never NULL. If this driver lacks a function, the pointer is
 * that of a function that returns CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND. Pointers of calls.def
 * may be NULL. */
struct spw_driver {
#define SPW_FN(symbol, ...) __typeof__(symbol) *symbol;
#include "driver/functions.def"
#define SPW_CALL(symbol) __typeof__(symbol) *symbol;
#include "driver/calls.def"
    /* Functions of the simulated GPU; NULL on a real one. The first returns the simulator's
     * version. The second returns the bytes of memory content that the simulator stores;
     * *ret_dropped is the number of bytes that it dropped (sim/driver/memory/payload.h). The third
     * tells the simulator how to get reports of the program's blocks that no call of the runtime
     * reports, and the fourth reads the memory that a device shares with the host
     * (sim/driver/core/control.h). */
    int (*simulated)(void);
    unsigned long long (*simulated_payload)(unsigned long long *ret_dropped);
    void (*simulated_blocks)(const _Atomic uint64_t *count,
                             void (*hand_over)(void (*take)(unsigned long long address,
                                                            unsigned long long bytes)));
    unsigned long long (*simulated_one_memory)(int ordinal, unsigned long long *ret_available);
    /* Number of stream captures in progress. During captures, spillway's own calls use the relaxed
     * capture mode. */
    _Atomic int captures_open;
    /* Receives the duration of each of spillway's own calls; NULL: calls are not timed. */
    void (*called)(int ordinal, int call, uint64_t ns);
    /* For each device, SPW_CALL_COUNT counters of spillway's own calls; NULL: not counted. Set
     * before the device is first used. */
    _Atomic uint64_t *calls[SPW_DEVICES_MAX];
    /* The driver's own cuInit and cuGetProcAddress_v2. All other pointers may belong to an
     * interposer behind this object (driver/dl.h). The interposer then calls the driver. */
    __typeof__(cuInit) *own_init;
    __typeof__(cuGetProcAddress_v2) *own_resolver;
    /* A hash table from the addresses of the real functions to their rows. */
    struct {
        const void *address;
        enum spw_fn fn;
    } slots[SPW_DRIVER_SLOTS];
};

/* Opens libcuda.so.1 if it is loaded, or if `load` is true and it can be loaded. Sets all pointers.
 * Returns NULL if the library does not exist, if there is no memory, or inside another call of this
 * function, which an interposer can cause. The caller owns the result. The library is never
 * unloaded. Calls the dynamic loader, so no lock may be held. */
struct spw_driver *spw_driver_open(bool load);

/* Frees a driver that is not used, because another thread opened one at the same time. */
void spw_driver_discard(struct spw_driver *driver);

/* Returns the driver of a process without libcuda.so.1. All its functions return
 * CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND. Static storage. */
struct spw_driver *spw_driver_absent(void);

/* Returns the driver's own function for a look-up by cuGetProcAddress. It replaces the result
 * `found`, which may be an interposer's function. Returns `found` if there is no interposer behind
 * this object, or if the function has no row. */
const void *spw_driver_own(const struct spw_driver *driver, const char *base, int version,
                           cuuint64_t flags, const void *found);

/* Returns the row whose real function is at `address`, an address that dlsym or cuGetProcAddress
 * returned; SPW_FN_COUNT if there is none. */
enum spw_fn spw_driver_find(const struct spw_driver *driver, const void *address);

/* Returns the exported name of a row; static storage. */
const char *spw_driver_symbol(enum spw_fn fn);

/* Returns the row with the exported name `symbol`; SPW_FN_COUNT if there is none. */
enum spw_fn spw_driver_row(const char *symbol);

/* Returns true if any row has this name for cuGetProcAddress. */
bool spw_driver_knows(const char *base);

/* Returns the exported name of one of spillway's own calls; static storage. */
const char *spw_driver_call_name(enum spw_own_call call);

/* The scope of driver calls that spillway itself makes on the calling thread. While a scope is
 * open, spillway's entries forward every call, because the driver may call them. Calls that are
 * unsafe during a stream capture do not invalidate other threads' captures if they are made in a
 * scope. */
struct spw_driver_scope {
    int depth;
    bool opens; /* the thread is in spw_driver_open */
    bool relaxed;
    CUstreamCaptureMode mode; /* the mode to restore; valid while `relaxed` */
    enum spw_own_call call;   /* the call that is timed */
    uint64_t began;           /* start of `call`; 0: no call is timed */
};

extern _Thread_local struct spw_driver_scope spw_driver_scope
    __attribute__((tls_model("initial-exec")));

/* Returns true while the calling thread is in a scope. */
static inline bool spw_driver_inside(void)
{
    return spw_driver_scope.depth != 0;
}

/* Counts one of spillway's own calls for device `ordinal`. Does nothing if `ordinal` is
 * negative. */
static inline void spw_driver_count(struct spw_driver *driver, int ordinal, enum spw_own_call call)
{
    if (ordinal >= 0 && ordinal < SPW_DEVICES_MAX && driver->calls[ordinal] != NULL) {
        atomic_fetch_add_explicit(&driver->calls[ordinal][call], 1, memory_order_relaxed);
    }
}

/* The slow parts of begin and end. They set the thread's capture mode to relaxed, and restore
 * it. */
void spw_driver_relax(struct spw_driver *driver, int ordinal);
void spw_driver_restore(struct spw_driver *driver, int ordinal);

/* Open and close a scope. Scopes nest; only the outermost one sets the capture mode. */
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

/* Called before and after one of spillway's own calls. The first opens a scope and counts the call.
 * The second closes the scope and returns `result`. */
static inline void spw_driver_enter(struct spw_driver *driver, int ordinal, enum spw_own_call call)
{
    spw_driver_begin(driver, ordinal);
    spw_driver_count(driver, ordinal, call);
    if (driver->called != NULL) {
        spw_driver_scope.call = call;
        spw_driver_scope.began = spw_clock_ns();
    }
}

static inline CUresult spw_driver_leave(struct spw_driver *driver, int ordinal, CUresult result)
{
    if (driver->called != NULL && spw_driver_scope.began != 0) {
        driver->called(ordinal, spw_driver_scope.call, spw_clock_ns() - spw_driver_scope.began);
        spw_driver_scope.began = 0;
    }
    spw_driver_end(driver, ordinal);
    return result;
}

/* Makes one of spillway's own calls, counted, in a scope:
 *     result = SPW_DRIVER_CALL(driver, ordinal, cuMemCreate, &handle, bytes, &properties, 0);
 * The function must be a row of calls.def, and not NULL. The arguments must make no such call. */
#define SPW_DRIVER_CALL(driver, ordinal, fn, ...)                                                  \
    spw_driver_leave(                                                                              \
        (driver), (ordinal),                                                                       \
        (spw_driver_enter((driver), (ordinal), SPW_CALL_##fn), (driver)->fn(__VA_ARGS__)))

/* SPW_DRIVER_CALL for a function without arguments. */
#define SPW_DRIVER_CALL0(driver, ordinal, fn)                                                      \
    spw_driver_leave((driver), (ordinal),                                                          \
                     (spw_driver_enter((driver), (ordinal), SPW_CALL_##fn), (driver)->fn()))
