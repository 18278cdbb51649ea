/* The simulated CUDA runtime, cuda*. It does not know how the driver works.
 *
 *   abi            names whose ABI differs between CUDA 12 and 13
 *   abi12          older ABIs of CUDA 12
 *   array          channel descriptors, without arrays
 *   context        current devices, and primary contexts
 *   copy           copies of memory
 *   device         number, choice, properties and settings of devices
 *   driver         typed pointers to the driver's functions
 *   entry          the parts that every exported function shares
 *   entrypoint     versions, and lookups of driver functions
 *   error          keeps each thread's last error
 *   errors         names and texts of errors
 *   forward        functions that only call the driver, in a table
 *   function       handles and attributes of kernels
 *   gen_entries    writes the entries of all functions
 *   gen_forwards   writes the functions of forward
 *   graph_copy     nodes that copy or fill
 *   graph_kernel   kernel nodes, and nodes of any kind
 *   launch         launches of kernels
 *   libcudart      the version of the library's symbols
 *   library        device code that a compiled program registers
 *   memory         allocation, and attributes of pointers
 *   memset         fills
 *   module         device code that a program loads itself
 *   properties     fields of cudaDeviceProp that are attributes
 *   register       functions that compiled code calls
 *   stream         destroys streams, finds their devices
 *   symbol         device variables
 *
 * A function is written once:
 *
 *     SIMRT_API(cudaMalloc, SIMRT_CONTEXT, (void **address, size_t size))
 *     {
 *         the body, which returns cudaError_t
 *     }
 *
 * gen_entries.py writes an entry for each function of NVIDIA's headers. The entry prepares the
 * state that the function needs, runs the body, and records a failure as the thread's last error.
 * The functions that only call the driver are rows of forward.def. The entry of a function without
 * a body reports the function's name.
 *
 * Locking: none; the runtime holds no lock around calls. Bodies call the driver through
 * simrt_driver. They do not call exported functions of this library. */
#pragma once

#include <stdbool.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "sim/runtime/abi.h"
#include "sim/runtime/context.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/error.h"

/* The state that a function needs before its body runs. */
enum simrt_need {
    SIMRT_NOTHING, /* none; works without a driver */
    SIMRT_DRIVER,  /* the driver is loaded and has devices */
    SIMRT_CONTEXT, /* as SIMRT_DRIVER, and a current context: by default the primary context of the
                    * thread's device */
};

/* Prepares the state, or returns the error that prevents it. */
cudaError_t simrt_prepare(enum simrt_need need);

/* The body of a function that is not simulated: reports the name on stderr the first time and
 * returns cudaErrorNotSupported, which becomes the thread's last error. The caller passes one
 * `reported` for each name. */
cudaError_t simrt_not_simulated(const char *name, bool *reported);

/* A list of parameters without its parentheses. */
#define SIMRT_LIST(...) __VA_ARGS__

/* Defines a function, as described above. `name` may be a macro (abi.h). */
#define SIMRT_API(name, need, params) SIMRT_API_OF(name, need, params)
#define SIMRT_API_OF(name, need, params)                                                           \
    extern const enum simrt_need name##_need;                                                      \
    const enum simrt_need name##_need = need;                                                      \
    cudaError_t name##_body params;                                                                \
    cudaError_t name##_body params

/* Defines a function that takes a stream, and the variant <name>_ptsz for programs whose default
 * stream is per thread. The body's parameter `bool ptsz` is true in this variant. It selects the
 * driver's variant. */
#define SIMRT_API_PTSZ(name, need, params) SIMRT_API(name, need, (bool ptsz, SIMRT_LIST params))

/* Defines a function that takes no stream but uses the default stream, and the variant
 * <name>_ptds. */
#define SIMRT_API_PTDS(name, need, params) SIMRT_API_PTSZ(name, need, params)
