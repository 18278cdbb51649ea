/* The functions for code that a CUDA compiler made. They register device code when a program or
 * library is loaded, and pass a launch configuration from <<<>>> to the kernel's stub. */
#include <stddef.h>
#include <string.h>

#include "sim/runtime/entry.h"
#include "sim/runtime/library.h"

#define EXPORT __attribute__((visibility("default")))

/* NVIDIA declares these functions only for its compiler (crt/host_runtime.h,
 * crt/device_functions.h). */
EXPORT void **__cudaRegisterFatBinary(void *image);
EXPORT void __cudaRegisterFatBinaryEnd(void **fatbin);
EXPORT void __cudaUnregisterFatBinary(void **fatbin);
EXPORT void __cudaRegisterFunction(void **fatbin, const char *host, char *device, const char *name,
                                   int thread_limit, uint3 *tid, uint3 *bid, dim3 *block,
                                   dim3 *grid, int *warp_size);
EXPORT void __cudaRegisterVar(void **fatbin, char *host, char *device, const char *name, int ext,
                              size_t size, int constant, int global);
EXPORT void __cudaRegisterManagedVar(void **fatbin, void **host, char *device, const char *name,
                                     int ext, size_t size, int constant, int global);
EXPORT char __cudaInitModule(void **fatbin);
EXPORT unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                struct CUstream_st *stream);

void **__cudaRegisterFatBinary(void *image)
{
    return (void **)simrt_fatbin_register(image);
}

void __cudaRegisterFatBinaryEnd(void **fatbin)
{
    /* Nothing to do: an image is loaded at its first use. */
    (void)fatbin;
}

void __cudaUnregisterFatBinary(void **fatbin)
{
    simrt_fatbin_unregister((struct simrt_fatbin *)fatbin);
}

void __cudaRegisterFunction(void **fatbin, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                            int *warp_size)
{
    if (fatbin != NULL) {
        simrt_kernel_register((struct simrt_fatbin *)fatbin, host, name);
    }
}

void __cudaRegisterVar(void **fatbin, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global)
{
    if (fatbin != NULL) {
        simrt_variable_register((struct simrt_fatbin *)fatbin, host, name, size);
    }
}

void __cudaRegisterManagedVar(void **fatbin, void **host, char *device, const char *name, int ext,
                              size_t size, int constant, int global)
{
    if (fatbin != NULL) {
        simrt_managed_register((struct simrt_fatbin *)fatbin, host, name, size);
    }
}

char __cudaInitModule(void **fatbin)
{
    cudaError_t error = simrt_prepare(SIMRT_CONTEXT);

    if (error == cudaSuccess) {
        error = fatbin == NULL ? cudaErrorInvalidValue
                               : simrt_fatbin_load((struct simrt_fatbin *)fatbin);
    }
    return simrt_error_record(error) == cudaSuccess;
}

/* The launch configurations of the calling thread that no stub has taken yet. If an argument of a
 * launch contains another launch, there are several. */
struct simrt_configuration {
    dim3 grid;
    dim3 block;
    size_t shared;
    cudaStream_t stream;
};

enum { MAX_CONFIGURATIONS = 8 };

static _Thread_local struct simrt_configuration configurations[MAX_CONFIGURATIONS];
static _Thread_local unsigned int configuration_count;

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                         struct CUstream_st *stream)
{
    if (configuration_count == MAX_CONFIGURATIONS) {
        /* The oldest ones belong to abandoned launches, whose arguments threw an exception. */
        configuration_count--;
        memmove(&configurations[0], &configurations[1],
                configuration_count * sizeof(configurations[0]));
    }
    configurations[configuration_count++] =
        (struct simrt_configuration){grid, block, shared, stream};
    return 0;
}

SIMRT_API(__cudaPopCallConfiguration, SIMRT_NOTHING,
          (dim3 * ret_grid, dim3 *ret_block, size_t *ret_shared, void *ret_stream))
{
    if (configuration_count == 0) {
        return cudaErrorMissingConfiguration;
    }
    const struct simrt_configuration *configuration = &configurations[--configuration_count];
    *ret_grid = configuration->grid;
    *ret_block = configuration->block;
    *ret_shared = configuration->shared;
    *(cudaStream_t *)ret_stream = configuration->stream;
    return cudaSuccess;
}

/* A compiled launch calls this function once, ignores the result and keeps the handle for all
 * devices. If the code cannot be loaded, the handle is the host function. Each launch then tries to
 * load the code again, and reports the reason if this fails. */
SIMRT_API(__cudaGetKernel, SIMRT_DRIVER, (cudaKernel_t * ret_kernel, const void *host))
{
    *ret_kernel = (cudaKernel_t)host;
    return simrt_kernel_find(host, ret_kernel);
}

SIMRT_API(cudaGetKernel, SIMRT_DRIVER, (cudaKernel_t * ret_kernel, const void *host))
{
    if (ret_kernel == NULL || host == NULL) {
        return cudaErrorInvalidValue;
    }
    return simrt_kernel_find(host, ret_kernel);
}
