/* Functions that work before cuInit: versions, function look-up by name, names of errors. */
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/api/abis.h"
#include "sim/driver/core/errors.h"

/* The release whose cuda.h this driver was written from. */
#define SIM_DRIVER_VERSION CUDA_VERSION

SIM_API(cuDriverGetVersion, SIM_NOTHING, (int *driverVersion), (driverVersion))
{
    if (driverVersion == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *driverVersion = SIM_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

/* The first row of a base name; rows are in the order of name and version. */
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

/* cuda.h: the newest ABI not newer than the version; with the per-thread flag the per-thread
 * variant, or the legacy one where there is none. */
static const struct sim_abi *choose_abi(const struct sim_abi *first, int version, bool per_thread)
{
    const struct sim_abi *end = sim_abis + sim_abi_count;
    const struct sim_abi *plain = NULL, *own = NULL;

    for (const struct sim_abi *abi = first; abi < end && strcmp(abi->base, first->base) == 0;
         abi++) {
        if (abi->version > version) {
            continue;
        }
        if (abi->per_thread) {
            own = abi;
        } else {
            plain = abi;
        }
    }
    return per_thread && own != NULL ? own : plain;
}

static CUresult look_up(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    const cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const struct sim_abi *first, *abi = NULL;

    /* cuda.h: INVALID_VALUE for a version above the driver's; the runtime's first look-up, an empty
     * name with version 0, must fail cleanly too. */
    if (symbol == NULL || symbol[0] == '\0' || pfn == NULL || version > SIM_DRIVER_VERSION ||
        (flags & ~known) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    first = first_abi(symbol);
    if (first != NULL) {
        abi = choose_abi(first, version,
                         (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
        found =
            abi != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    *pfn = abi != NULL ? (void *)(uintptr_t)abi->address : NULL;
    if (status != NULL) {
        *status = found;
    }
    sim_note("%s %d flags=%llu -> %s", symbol, version, (unsigned long long)flags,
             abi != NULL ? sim_fn_names[abi->fn] : "nothing");
    return CUDA_SUCCESS;
}

SIM_API(cuGetProcAddress, SIM_NOTHING,
        (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags),
        (symbol, pfn, cudaVersion, flags))
{
    return look_up(symbol, pfn, cudaVersion, flags, NULL);
}

SIM_API(cuGetProcAddress_v2, SIM_NOTHING,
        (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
         CUdriverProcAddressQueryResult *symbolStatus),
        (symbol, pfn, cudaVersion, flags, symbolStatus))
{
    return look_up(symbol, pfn, cudaVersion, flags, symbolStatus);
}

/* Private tables are not modelled and none is ever handed out. */
SIM_API(cuGetExportTable, SIM_NOTHING, (const void **ppExportTable, const CUuuid *pExportTableId),
        (ppExportTable, pExportTableId))
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* cuda.h: an unknown code gives INVALID_VALUE and a NULL string. */
static CUresult describe(const struct sim_error *error, const char *text, const char **ret_text)
{
    if (ret_text == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_text = error != NULL ? text : NULL;
    return error != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGetErrorName, SIM_NOTHING, (CUresult error, const char **pStr), (error, pStr))
{
    const struct sim_error *found = sim_error_find(error);

    return describe(found, found != NULL ? found->name : NULL, pStr);
}

SIM_API(cuGetErrorString, SIM_NOTHING, (CUresult error, const char **pStr), (error, pStr))
{
    const struct sim_error *found = sim_error_find(error);

    return describe(found, found != NULL ? found->text : NULL, pStr);
}
