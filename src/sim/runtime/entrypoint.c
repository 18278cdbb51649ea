/* Versions, and look-up of driver functions through the runtime. */
#include <stddef.h>

#include "sim/runtime/entry.h"

SIMRT_API(cudaRuntimeGetVersion, SIMRT_NOTHING, (int *ret_version))
{
    if (ret_version == NULL) {
        return cudaErrorInvalidValue;
    }
    *ret_version = CUDART_VERSION;
    return cudaSuccess;
}

SIMRT_API(cudaDriverGetVersion, SIMRT_NOTHING, (int *ret_version))
{
    if (ret_version == NULL) {
        return cudaErrorInvalidValue;
    }
    /* Without a driver, the version is 0. This is not an error. */
    if (simrt_init() == cudaErrorInsufficientDriver) {
        *ret_version = 0;
        return cudaSuccess;
    }
    return simrt_error(simrt_driver.cuDriverGetVersion(ret_version));
}

/* Passes the version and the flags to the driver unchanged, with one exception: if no flag is set,
 * a program that was compiled for per-thread default streams gets the per-thread variant. */
static cudaError_t entry_point(bool ptsz, const char *name, void **ret_address,
                               unsigned int version, unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *ret_status)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

    if (name == NULL || ret_address == NULL) {
        return cudaErrorInvalidValue;
    }
    if (ptsz && flags == cudaEnableDefault) {
        flags = cudaEnablePerThreadDefaultStream;
    }
    CUresult result = simrt_driver.resolve(name, ret_address, (int)version, flags, &status);
    if (result == CUDA_SUCCESS && ret_status != NULL) {
        *ret_status = (enum cudaDriverEntryPointQueryResult)status;
    }
    return simrt_error(result);
}

SIMRT_API_PTSZ(cudaGetDriverEntryPoint, SIMRT_DRIVER,
               (const char *name, void **ret_address, unsigned long long flags,
                enum cudaDriverEntryPointQueryResult *ret_status))
{
    return entry_point(ptsz, name, ret_address, CUDART_VERSION, flags, ret_status);
}

SIMRT_API_PTSZ(cudaGetDriverEntryPointByVersion, SIMRT_DRIVER,
               (const char *name, void **ret_address, unsigned int version,
                unsigned long long flags, enum cudaDriverEntryPointQueryResult *ret_status))
{
    return entry_point(ptsz, name, ret_address, version, flags, ret_status);
}

/* NVIDIA's libraries exchange private tables through this function; the simulator has none. */
SIMRT_API(cudaGetExportTable, SIMRT_NOTHING, (const void **ret_table, const cudaUUID_t *id))
{
    return cudaErrorNotSupported;
}

/* There is no profiler, so there is nothing to start or stop. */
SIMRT_API(cudaProfilerStart, SIMRT_DRIVER, (void))
{
    return cudaSuccess;
}

SIMRT_API(cudaProfilerStop, SIMRT_DRIVER, (void))
{
    return cudaSuccess;
}
