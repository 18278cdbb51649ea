/* The exported functions of the simulated driver, cu*. It does not know the runtime and the
 * libraries.
 *
 *   abis               the table behind cuGetProcAddress
 *   attributes         the values of the device attributes
 *   capture_api        capture of streams
 *   context_api        contexts
 *   device_api         devices: number, name, memory, attributes, peers
 *   entry              the beginning and the end of every exported function
 *   event_api          events
 *   function           attributes of functions and of kernels
 *   graph_api          graphs, nodes and edges
 *   graph_exec         executable graphs, and their launch
 *   graph_memory_api   figures and trimming of graphs' memory
 *   graph_node         converts nodes to cuda.h's parameters, and back
 *   graph_params       parameters of nodes
 *   green              green contexts
 *   host_call_api      host functions and callbacks in a stream
 *   ipc_event          events that processes share
 *   launch_api         launches of kernels
 *   library_api        libraries and kernels without a context
 *   lifetime           creates and ends contexts with all that they own
 *   link               the linker, which joins PTX texts
 *   loaded_libs        warns about libraries that cannot work here
 *   module_api         modules
 *   occupancy_api      occupancy of kernels
 *   primary            primary contexts
 *   procaddress        versions, look-ups and error names, also before cuInit
 *   profiler           the profiler's functions, which do nothing
 *   stream_api         streams
 *   tensor_map_api     tensor maps
 *   user_object_api    user objects
 *   value              writes to memory, and waits for it, in streams
 *
 * A function is written once:
 *
 *     SIM_API(cuMemCreate, SIM_HEALTHY, (CUmemGenericAllocationHandle *handle, ...))
 *     {
 *         body, returns CUresult
 *     }
 *
 * The entry, which gen_functions.py writes for each function of cuda.h, takes the lock, counts and
 * logs the call, applies SPILLWAY_SIM_FAIL, checks the function's requirements, lets the scheduler
 * take a step, runs the body and releases the lock. A function without a body is not modelled.
 *
 * Locking: the body runs with the simulator's lock held (core/lock.h) and must not call an exported
 * function, which would take the lock again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "common/newer_cuda.h"
#include "sim/driver/core/calls.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/functions.h" /* generated: enum sim_fn, one SIM_FN_<name> per function */

/* Requirements of a function, checked before its body runs. */
enum sim_need {
    SIM_NOTHING,     /* may run before cuInit; takes no scheduler step */
    SIM_INITIALIZED, /* cuInit was called; otherwise CUDA_ERROR_NOT_INITIALIZED */
    SIM_HEALTHY,     /* as INITIALIZED, and the current context, if live, has no sticky error */
    SIM_CONTEXT,     /* as HEALTHY, and there is a current context; otherwise
                      * CUDA_ERROR_INVALID_CONTEXT */
};

/* Begins a call: takes the lock and returns CUDA_SUCCESS if the body is to run, otherwise the
 * result of the call. In either case, sim_leave() must follow on the same thread. */
CUresult sim_enter(enum sim_fn fn, enum sim_need need);

/* Ends a call: logs its result, releases the lock, returns `result`. */
CUresult sim_leave(enum sim_fn fn, CUresult result);

/* The complete entry of a function that is not modelled: counts the call, names it once in the call
 * log, returns CUDA_ERROR_NOT_SUPPORTED. Takes the lock itself. */
CUresult sim_unmodelled(enum sim_fn fn);

/* One function, see above. `params` is its list of parameters in parentheses, as in cuda.h. */
#define SIM_API(name, need, params)                                                                \
    extern const enum sim_need name##_need;                                                        \
    const enum sim_need name##_need = need;                                                        \
    CUresult name##_body params;                                                                   \
    CUresult name##_body params

#define SIM_LIST(...) __VA_ARGS__

/* A function that takes a stream, and its _ptsz variant, which has the same body. The body sees
 * `bool ptsz`, true for the variant (cuda.h: a NULL stream then means CU_STREAM_PER_THREAD). */
#define SIM_API_PTSZ(name, need, params) SIM_API(name, need, (bool ptsz, SIM_LIST params))

/* A function on the default stream, and its _ptds variant. The body sees `bool ptsz`. */
#define SIM_API_PTDS(name, need, params) SIM_API_PTSZ(name, need, params)

/* Another version of the function `of`, which precedes it, with the same parameters and body. */
#define SIM_API_SAME(name, of)                                                                     \
    extern const enum sim_need name##_need __attribute__((alias(#of "_need")));                    \
    extern __typeof__(of##_body) name##_body __attribute__((alias(#of "_body")))
