/* Modules, their kernels, and launches. It does not know graphs.
 *
 *   image           module images, and the names in them
 *   image_read      the formats of images
 *   kernel          facts about kernels, and the built-in kernels
 *   kernel_launch   launches as operations
 *   launch_demand   the demand of a launch
 *   module          modules, libraries, functions, kernels
 *   occupancy       how many blocks of a kernel fit on a multiprocessor
 *   ptx             reads the declarations of PTX
 *   tensor_map      opaque descriptors of memory
 *
 * A library is loaded once and becomes a module in each context that uses it.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "sim/driver/core/context.h"
#include "sim/driver/kernels/image.h"
#include "sim/driver/kernels/kernel.h"

struct sim_library;

/* The size of a global variable that the image does not declare: the size of all constant memory,
 * 64 KiB. */
#define SIM_UNKNOWN_GLOBAL_BYTES ((size_t)64 << 10)

/* A CUfunction: a kernel in a context. */
struct sim_function {
    struct sim_function *next; /* of its module */
    CUfunction handle;
    struct sim_module *module;
    const struct sim_kernel_info *info;
    int attributes[CU_FUNC_ATTRIBUTE_MAX]; /* CUfunction_attribute */
    unsigned int own;                      /* a bit for each attribute that cuFuncSetAttribute has
                                            * set */
};

struct sim_module {
    struct sim_module *next; /* of its context */
    CUmodule handle;
    CUcontext ctx;
    struct sim_library *library; /* NULL: loaded on its own */
    struct sim_image *image;     /* a reference */
    struct sim_function *functions;
    size_t code_bytes;             /* of device memory, charged */
    CUdeviceptr data;              /* global variables that the image declares; 0: none */
    struct module_global *globals; /* variables that the image does not declare */
};

/* A CUkernel: a kernel of a library, in no context. */
struct sim_kernel {
    struct sim_kernel *next; /* of its library */
    CUkernel handle;
    struct sim_library *library;
    const struct sim_kernel_info *info;
    int attributes[CU_FUNC_ATTRIBUTE_MAX]; /* on every device */
};

struct sim_library {
    CUlibrary handle;
    struct sim_image *image; /* a reference */
    struct sim_kernel *kernels;
    struct sim_managed *managed; /* managed variables that were looked up (library_api.c) */
};

/* Loads an image into a context: charges its code (rounded up to 64 KiB) and takes memory for its
 * variables. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_module_load(CUcontext ctx, struct sim_image *image, struct sim_library *library,
                         struct sim_module **ret_module);

/* Frees the module. Queued launches of its functions still run. */
void sim_module_unload(struct sim_module *module);

/* The function of that name, created at the first lookup. CUDA_ERROR_NOT_FOUND for "". */
CUresult sim_module_function(struct sim_module *module, const char *name,
                             struct sim_function **ret_function);

/* Address and size of a global variable. CUDA_ERROR_NOT_FOUND if the image's variables are known
 * and do not include this one. If the image's variables are not known, the first lookup creates the
 * variable with 64 KiB. */
CUresult sim_module_global(struct sim_module *module, const char *name, CUdeviceptr *ret_address,
                           size_t *ret_size);

/* The initial attributes of a kernel of an image on a device. */
void sim_attributes_init(const struct sim_kernel_info *info, const struct sim_image *image,
                         const struct sim_device *device, int *ret_attributes);

/* The module of a library in a context. Loads the library into the context at the first call. */
CUresult sim_library_module(struct sim_library *library, CUcontext ctx,
                            struct sim_module **ret_module);

/* The function of a CUfunction. A CUkernel may be passed instead; the result is then the kernel's
 * function in the context. CUDA_ERROR_INVALID_HANDLE. */
CUresult sim_function_resolve(CUfunction handle, CUcontext ctx, struct sim_function **ret_function);

enum { SIM_WARP_SIZE = 32 };

/* Bytes of shared memory that the system reserves for each block (occupancy.c). */
size_t sim_reserved_shared(const struct spw_gpu_profile *profile);

/* The number of blocks of that size that fit on a multiprocessor at once (occupancy.c). */
int sim_occupancy(const struct sim_function *function, int block_size, size_t dynamic_shared);

/* If `handle` is a CUfunction, sets *ctx to the function's context. Does not change *ctx for a
 * CUkernel or NULL. CUDA_ERROR_INVALID_HANDLE for other handles. */
CUresult sim_function_ctx(CUfunction handle, CUcontext *ctx);
