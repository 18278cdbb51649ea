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
 *   graph_exec         executable graphs and their launches
 *   graph_memory_api   memory usage of graphs, and trimming
 *   graph_node         converts between nodes and cuda.h's parameter structs
 *   graph_params       parameters of nodes
 *   green              green contexts
 *   host_call_api      host functions and callbacks in a stream
 *   ipc_event          events shared between processes
 *   launch_api         kernel launches
 *   library_api        libraries and kernels without a context
 *   lifetime           creates and destroys contexts with everything they own
 *   link               the linker, which joins PTX texts
 *   loaded_libs        warns about libraries that cannot work with the simulator
 *   module_api         modules
 *   occupancy_api      occupancy of kernels
 *   primary            primary contexts
 *   procaddress        versions, function lookups and error names, usable before cuInit
 *   profiler           the profiler's functions, which do nothing
 *   stream_api         streams
 *   tensor_map_api     tensor maps
 *   user_object_api    user objects
 *   value              memory writes and memory waits in streams
 *
 * A function is written once:
 *
 *     SIM_API(cuMemCreate, SIM_HEALTHY, (CUmemGenericAllocationHandle *handle, ...))
 *     {
 *         body, returns CUresult
 *     }
 *
 * gen_functions.py writes an entry for each function of cuda.h. The entry takes the lock, counts
 * and logs the call, applies SPILLWAY_SIM_FAIL, checks the function's requirements, lets the
 * scheduler take a step, runs the body and releases the lock. If a function has no body, it is not
 * modelled.
 *
 * Locking: the body runs with the simulator's lock (core/lock.h) held. The body must not call an
 * exported function, because that function would take the lock again. */
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
    SIM_HEALTHY,     /* as SIM_INITIALIZED; a live current context has no sticky error */
    SIM_CONTEXT,     /* as SIM_HEALTHY, and there is a current context; otherwise
                      * CUDA_ERROR_INVALID_CONTEXT */
};

/* Begins a call and takes the lock. Returns CUDA_SUCCESS if the body must run; otherwise returns
 * the result of the call. In both cases, the same thread must then call sim_leave(). */
CUresult sim_enter(enum sim_fn fn, enum sim_need need);

/* Ends a call: logs its result, releases the lock, returns `result`. */
CUresult sim_leave(enum sim_fn fn, CUresult result);

/* Handles a call of a function that is not modelled: counts the call, names the function once in
 * the call log, and returns CUDA_ERROR_NOT_SUPPORTED. Takes the lock itself. */
CUresult sim_unmodelled(enum sim_fn fn);

/* Defines one function, as described above. `params` is its list of parameters in parentheses, as
 * in cuda.h. */
#define SIM_API(name, need, params)                                                                \
    extern const enum sim_need name##_need;                                                        \
    const enum sim_need name##_need = need;                                                        \
    CUresult name##_body params;                                                                   \
    CUresult name##_body params

#define SIM_LIST(...) __VA_ARGS__

/* Defines a function that takes a stream, and its _ptsz variant with the same body. In the body,
 * `bool ptsz` is true for the variant. In the variant, a NULL stream means CU_STREAM_PER_THREAD
 * (cuda.h). */
#define SIM_API_PTSZ(name, need, params) SIM_API(name, need, (bool ptsz, SIM_LIST params))

/* Defines a function that uses the default stream, and its _ptds variant. In the body, `bool ptsz`
 * is true for the variant. */
#define SIM_API_PTDS(name, need, params) SIM_API_PTSZ(name, need, params)

/* Defines another version of the function `of`, with the same parameters and body. `of` must be
 * defined earlier in the same file. */
#define SIM_API_SAME(name, of)                                                                     \
    extern const enum sim_need name##_need __attribute__((alias(#of "_need")));                    \
    extern __typeof__(of##_body) name##_body __attribute__((alias(#of "_body")))
