/* Entry points of the simulated driver: how every exported cu* function begins and ends.
 *
 * A function is written once:
 *
 *     SIM_API(cuMemCreate, SIM_HEALTHY, (CUmemGenericAllocationHandle *handle, ...), (handle, ...))
 *     {
 *         body, returns CUresult
 *     }
 *
 * The entry takes the lock, counts and logs the call, applies SPILLWAY_SIM_FAIL, checks what the
 * function needs, lets the scheduler take a step, runs the body and releases the lock. A function
 * of cuda.h that is written nowhere gets a weak stub from gen_functions.py.
 *
 * Locking: one mutex for the whole simulator. Bodies and every internal function run with it held,
 * unless their declaration says otherwise; a body must not call an exported function. A body that
 * has to wait for another thread calls sim_wait_progress(), which lets go of the lock meanwhile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/functions.h" /* generated: enum sim_fn, one SIM_FN_<name> per function */

/* What a function requires before its body runs. */
enum sim_need {
    SIM_NOTHING,     /* runs before cuInit too; takes no scheduler step */
    SIM_INITIALIZED, /* cuInit was called, else CUDA_ERROR_NOT_INITIALIZED */
    SIM_HEALTHY,     /* and the thread's current context, if it has a live one, no sticky error */
    SIM_CONTEXT,     /* and there is a current context, else CUDA_ERROR_INVALID_CONTEXT */
};

/* Begins a call: takes the lock and returns CUDA_SUCCESS if the body is to run, else the result of
 * the call. Must be followed by sim_leave() on the same thread in either case. */
CUresult sim_enter(enum sim_fn fn, enum sim_need need);

/* Ends a call: logs its result, releases the lock, returns `result`. */
CUresult sim_leave(enum sim_fn fn, CUresult result);

/* The whole of a function that is not modelled: counts, names it once in the call log, returns
 * CUDA_ERROR_NOT_SUPPORTED. Takes the lock itself. */
CUresult sim_unmodelled(enum sim_fn fn);

/* Adds a detail to the log line of the call in progress ("va=0x... size=..."). Costs nothing when
 * SPILLWAY_SIM_LOG is not set. */
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line on stderr, "spillway sim: ...", at most once per `once` (NULL: every time). */
void sim_warn_once(bool *once, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The lock, for the simulator's own threads (host callbacks). Exported bodies hold it already. */
void sim_lock(void);
void sim_unlock(void);

/* Waits until some thread calls sim_notify_progress(); spurious returns are possible. The lock is
 * released while waiting and held again on return: look at every state anew. */
void sim_wait_progress(void);

/* Wakes every thread in sim_wait_progress(). Called by sim_leave() when threads are waiting, and by
 * whoever makes work runnable outside an API call. */
void sim_notify_progress(void);

#define SIM_EXPORT    __attribute__((visibility("default")))
#define SIM_ARGS(...) __VA_ARGS__

/* One function, see above. `params` and `args` are lists in parentheses; `args` has the names. */
#define SIM_API(name, need, params, args)                                                          \
    static CUresult name##_body params;                                                            \
    SIM_EXPORT CUresult name params                                                                \
    {                                                                                              \
        CUresult result = sim_enter(SIM_FN_##name, need);                                          \
        if (result == CUDA_SUCCESS) {                                                              \
            result = name##_body args;                                                             \
        }                                                                                          \
        return sim_leave(SIM_FN_##name, result);                                                   \
    }                                                                                              \
    static CUresult name##_body params

/* One exported name of a pair with one body; the body's first parameter, `bool ptsz`, says whether
 * it was the per-thread-stream one (cuda.h: NULL then means CU_STREAM_PER_THREAD). */
#define SIM_TWIN_ENTRY(export_name, body, is_ptsz, need, params, args)                             \
    SIM_EXPORT CUresult export_name params                                                         \
    {                                                                                              \
        CUresult result = sim_enter(SIM_FN_##export_name, need);                                   \
        if (result == CUDA_SUCCESS) {                                                              \
            result = body(is_ptsz, SIM_ARGS args);                                                 \
        }                                                                                          \
        return sim_leave(SIM_FN_##export_name, result);                                            \
    }

/* A function that takes a stream, and its _ptsz twin. The body sees `bool ptsz`. */
#define SIM_API_PTSZ(name, need, params, args)                                                     \
    static CUresult name##_body(bool ptsz, SIM_ARGS params);                                       \
    SIM_TWIN_ENTRY(name, name##_body, false, need, params, args)                                   \
    SIM_TWIN_ENTRY(name##_ptsz, name##_body, true, need, params, args)                             \
    static CUresult name##_body(bool ptsz, SIM_ARGS params)

/* A function on the default stream, and its _ptds twin. The body sees `bool ptsz`. */
#define SIM_API_PTDS(name, need, params, args)                                                     \
    static CUresult name##_body(bool ptsz, SIM_ARGS params);                                       \
    SIM_TWIN_ENTRY(name, name##_body, false, need, params, args)                                   \
    SIM_TWIN_ENTRY(name##_ptds, name##_body, true, need, params, args)                             \
    static CUresult name##_body(bool ptsz, SIM_ARGS params)
