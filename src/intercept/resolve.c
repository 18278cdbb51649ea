#include "intercept/resolve.h"

#include "intercept/entry.h"
#include "process/process.h"
#include "serve/handlers.h"
#include "system/log.h"

#include <stddef.h>

void *spw_intercept_resolve(void *address, const char *name)
{
    const struct spw_driver *driver = spw_process_off() ? NULL : spw_process_loaded();
    enum spw_fn fn = driver == NULL ? SPW_FN_COUNT : spw_driver_find(driver, address);

    if (fn != SPW_FN_COUNT) {
        return spw_intercept_entry_address(fn);
    }
    /* A version that is not in the list, or a function of another library. */
    if (driver != NULL && spw_log_enabled(SPW_LOG_DEBUG) && spw_driver_knows(name)) {
        spw_log(SPW_LOG_DEBUG, "%s resolves to a function that is not in the list", name);
    }
    return address;
}

/* Replaces the function that the driver, or an interposer behind us, found for a look-up. */
static void replace(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
    const struct spw_driver *driver = spw_process_driver();

    if (spw_process_off()) {
        return;
    }
    *pfn = spw_intercept_resolve(
        (void *)(uintptr_t)spw_driver_own(driver, symbol, version, flags, *pfn), symbol);
}

/* The driver writes all outputs, and only a function that it found is replaced. A look-up
 * that the driver makes itself, during one of spillway's own calls, gets the driver's function. */
CUresult spw_serve_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
                                    cuuint64_t flags)
{
    CUresult result = spw_process_driver()->cuGetProcAddress(symbol, pfn, cudaVersion, flags);

    if (result == CUDA_SUCCESS && pfn != NULL && *pfn != NULL && !spw_driver_inside()) {
        replace(symbol, pfn, cudaVersion, flags);
    }
    return result;
}

CUresult spw_serve_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                       cuuint64_t flags,
                                       CUdriverProcAddressQueryResult *symbolStatus)
{
    CUresult result =
        spw_process_driver()->cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, symbolStatus);

    if (result == CUDA_SUCCESS && pfn != NULL && *pfn != NULL && !spw_driver_inside()) {
        replace(symbol, pfn, cudaVersion, flags);
    }
    return result;
}
