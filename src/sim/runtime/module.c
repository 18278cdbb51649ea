/* Libraries of device code that the program loads itself: their kernels and variables. */
#include <stddef.h>

#include "sim/runtime/entry.h"
#include "sim/runtime/library.h"

SIMRT_API(cudaLibraryUnload, SIMRT_DRIVER, (cudaLibrary_t library))
{
    CUresult result = simrt_driver.cuLibraryUnload(library);

    if (result == CUDA_SUCCESS) {
        simrt_library_drop_kernels(library);
    }
    return simrt_error(result);
}

SIMRT_API(cudaLibraryGetKernel, SIMRT_DRIVER,
          (cudaKernel_t * ret_kernel, cudaLibrary_t library, const char *name))
{
    CUresult result = simrt_driver.cuLibraryGetKernel(ret_kernel, library, name);

    if (result == CUDA_SUCCESS) {
        simrt_kernel_adopt(*ret_kernel, library);
    }
    return simrt_error(result);
}

SIMRT_API(cudaLibraryEnumerateKernels, SIMRT_DRIVER,
          (cudaKernel_t * ret_kernels, unsigned int count, cudaLibrary_t library))
{
    unsigned int available = 0;
    CUresult result = simrt_driver.cuLibraryGetKernelCount(&available, library);

    if (result == CUDA_SUCCESS) {
        result = simrt_driver.cuLibraryEnumerateKernels(ret_kernels, count, library);
    }
    for (unsigned int i = 0; result == CUDA_SUCCESS && i < count && i < available; i++) {
        simrt_kernel_adopt(ret_kernels[i], library);
    }
    return simrt_error(result);
}

SIMRT_API(cudaKernelSetAttributeForDevice, SIMRT_DRIVER,
          (cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int ordinal))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(
        simrt_driver.cuKernelSetAttribute((CUfunction_attribute)attribute, value, kernel, device));
}
