/* Entry points of the simulated runtime: how every exported cuda* function begins and ends.
 *
 * A function is written once:
 *
 *     SIMRT_API(cudaMalloc, SIMRT_CONTEXT, (void **address, size_t size), (address, size))
 *     {
 *         body, returns cudaError_t
 *     }
 *
 * The entry provides what the function needs, runs the body and remembers a failure as the thread's
 * last error. A function that is written nowhere gets a weak stub from gen_stubs.py.
 *
 * Locking: none; the runtime has no lock of its own around calls. Bodies call the driver through
 * simrt_driver, and no exported function of this library. */
#pragma once

#include <stdbool.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "sim/runtime/context.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/error.h"

/* What a function needs before its body runs. */
enum simrt_need {
    SIMRT_NOTHING, /* works without a driver */
    SIMRT_DRIVER,  /* the driver is loaded and has devices */
    SIMRT_CONTEXT, /* and the thread has a current context, the primary one of its device if none */
};

/* Provides it, or says why not. */
cudaError_t simrt_provide(enum simrt_need need);

/* The whole of a function that is not simulated: names it on stderr the first time and answers
 * cudaErrorNotSupported, which becomes the thread's last error. `told` is the name's own. */
cudaError_t simrt_not_simulated(const char *name, bool *told);

/* A function's parameters or arguments without their parentheses. */
#define SIMRT_LIST(...) __VA_ARGS__

/* One exported name with the body `call`. NVIDIA's header declares only half of the names, so each
 * is declared here too. */
#define SIMRT_ENTRY(export_name, need, params, call)                                               \
    __attribute__((visibility("default"))) cudaError_t CUDARTAPI export_name params;               \
    cudaError_t CUDARTAPI export_name params                                                       \
    {                                                                                              \
        cudaError_t error = simrt_provide(need);                                                   \
        return simrt_error_remember(error != cudaSuccess ? error : (call));                        \
    }

#define SIMRT_API(name, need, params, args)                                                        \
    static cudaError_t name##_body params;                                                         \
    SIMRT_ENTRY(name, need, params, name##_body args)                                              \
    static cudaError_t name##_body params

/* A function that takes a stream, and its twin for programs whose default stream is per thread. The
 * body sees `bool ptsz`, which selects the driver's twin too. */
#define SIMRT_API_PTSZ(name, need, params, args)                                                   \
    static cudaError_t name##_body(bool ptsz, SIMRT_LIST params);                                  \
    SIMRT_ENTRY(name, need, params, name##_body(false, SIMRT_LIST args))                           \
    SIMRT_ENTRY(name##_ptsz, need, params, name##_body(true, SIMRT_LIST args))                     \
    static cudaError_t name##_body(bool ptsz, SIMRT_LIST params)

/* The same for functions that work on the default stream without naming it. */
#define SIMRT_API_PTDS(name, need, params, args)                                                   \
    static cudaError_t name##_body(bool ptsz, SIMRT_LIST params);                                  \
    SIMRT_ENTRY(name, need, params, name##_body(false, SIMRT_LIST args))                           \
    SIMRT_ENTRY(name##_ptds, need, params, name##_body(true, SIMRT_LIST args))                     \
    static cudaError_t name##_body(bool ptsz, SIMRT_LIST params)
