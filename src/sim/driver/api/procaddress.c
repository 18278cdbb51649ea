/* Functions that work before cuInit: versions, function look-up by name, names of errors. */
#include <string.h>

#include "sim/driver/api/abis.h"
#include "sim/driver/api/entry.h"
#include "sim/driver/api/loaded_libs.h"
#include "sim/driver/core/control.h"
#include "sim/driver/core/errors.h"

/* The CUDA release whose cuda.h this driver follows. */
#define SIM_DRIVER_VERSION SPW_NEWEST_CUDA

SIM_API(cuDriverGetVersion, SIM_NOTHING, (int *driverVersion))
{
    if (driverVersion == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *driverVersion = SIM_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

/* The first row of a base name; the rows are sorted by name, then by version. */
static const struct sim_abi *first_abi(const char *base)
{
    unsigned int low = 0, high = sim_abi_count;

    while (low < high) {
        unsigned int middle = low + (high - low) / 2;

        if (strcmp(sim_abis[middle].base, base) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sim_abi_count && strcmp(sim_abis[low].base, base) == 0 ? &sim_abis[low] : NULL;
}

/* Chooses as NVIDIA's driver does (docs/dev/driver.md): the newest ABI that is not newer than
 * `version`, which may be above the driver's own version. With `per_thread`, if the function has
 * per-thread variants, only these are considered. */
static const struct sim_abi *choose_abi(const struct sim_abi *first, unsigned int version,
                                        bool per_thread)
{
    const struct sim_abi *end = sim_abis + sim_abi_count;
    const struct sim_abi *plain = NULL, *own = NULL;
    bool has_own = false;

    for (const struct sim_abi *abi = first; abi < end && strcmp(abi->base, first->base) == 0;
         abi++) {
        has_own |= abi->per_thread;
        if ((unsigned int)abi->version > version) {
            continue;
        }
        if (abi->per_thread) {
            own = abi;
        } else {
            plain = abi;
        }
    }
    return per_thread && has_own ? own : plain;
}

SIM_EXPORT void *spillway_sim_hidden(const char *name)
{
    const struct sim_abi *first = first_abi(name);
    const struct sim_abi *abi =
        first != NULL ? choose_abi(first, SIM_DRIVER_VERSION, /* per_thread */ false) : NULL;

    return abi != NULL ? (void *)(uintptr_t)abi->address : NULL;
}

/* Writes the outputs on success; *ret_abi is NULL if the function is not found. NVIDIA's driver
 * crashes if `symbol` or `pfn` is NULL; here that is an error. */
static CUresult look_up(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        const struct sim_abi **ret_abi, CUdriverProcAddressQueryResult *ret_status)
{
    const cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct sim_abi *first, *abi = NULL;

    if (symbol == NULL || pfn == NULL || (flags & ~known) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    first = first_abi(symbol);
    if (first != NULL) {
        abi = choose_abi(first, (unsigned int)version,
                         (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
        *ret_status =
            abi != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    *ret_abi = abi;
    sim_note("%s %d flags=%llu -> %s", symbol, version, (unsigned long long)flags,
             abi != NULL ? sim_fn_names[abi->fn] : "nothing");
    return CUDA_SUCCESS;
}

/* The first version has no status: for an unknown function it returns an error and leaves *pfn as
 * it is. */
SIM_API(cuGetProcAddress, SIM_NOTHING,
        (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags))
{
    CUdriverProcAddressQueryResult status;
    const struct sim_abi *abi;
    CUresult result = look_up(symbol, pfn, cudaVersion, flags, &abi, &status);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (abi == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *pfn = (void *)(uintptr_t)abi->address;
    return CUDA_SUCCESS;
}

SIM_API(cuGetProcAddress_v2, SIM_NOTHING,
        (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
         CUdriverProcAddressQueryResult *symbolStatus))
{
    CUdriverProcAddressQueryResult status;
    const struct sim_abi *abi;
    CUresult result = look_up(symbol, pfn, cudaVersion, flags, &abi, &status);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    *pfn = abi != NULL ? (void *)(uintptr_t)abi->address : NULL;
    if (symbolStatus != NULL) {
        *symbolStatus = status;
    }
    return CUDA_SUCCESS;
}

/* Private tables, which NVIDIA's runtime requests, are not modelled: none is ever returned. */
SIM_EXPORT CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    CUresult result;

    sim_loaded_libs_refused(__builtin_return_address(0));
    result = sim_enter(SIM_FN_cuGetExportTable, SIM_NOTHING);
    return sim_leave(SIM_FN_cuGetExportTable,
                     result == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : result);
}

/* cuda.h: for an unknown code, INVALID_VALUE and a NULL string. */
static CUresult describe(const struct sim_error *error, const char *text, const char **ret_text)
{
    if (ret_text == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_text = error != NULL ? text : NULL;
    return error != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGetErrorName, SIM_NOTHING, (CUresult error, const char **pStr))
{
    const struct sim_error *found = sim_error_find(error);

    return describe(found, found != NULL ? found->name : NULL, pStr);
}

SIM_API(cuGetErrorString, SIM_NOTHING, (CUresult error, const char **pStr))
{
    const struct sim_error *found = sim_error_find(error);

    return describe(found, found != NULL ? found->text : NULL, pStr);
}
