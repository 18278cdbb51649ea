/* Page-locked host memory, which is accounted for the current device, and managed memory. The
 * driver allocates both. Kernels may read addresses from both. */
#include "call/site.h"
#include "device/device.h"
#include "device/spill.h"
#include "program/stream.h"
#include "serve/account.h"
#include "serve/handlers.h"
#include "submit/indirect.h"

/* Accounts for the result of an allocation. `api` is the driver's function. */
static CUresult pinned(CUresult result, const char *api, void *const *address, size_t bytes)
{
    const struct spw_stream_info *here =
        result == CUDA_SUCCESS ? spw_program_stream_current() : NULL;

    if (here != NULL) {
        spw_serve_account_allocated((CUdeviceptr)(uintptr_t)*address,
                                    &(struct spw_ledger_entry){.kind = SPW_LEDGER_PINNED,
                                                               .ordinal = here->ordinal,
                                                               .context = here->stream.context,
                                                               .bytes = bytes,
                                                               .site = spw_call_site(api)});
    }
    if (result == CUDA_SUCCESS) {
        spw_submit_indirect_mapped((uint64_t)(uintptr_t)*address, bytes);
    }
    return result;
}

/* Returns false, with a report, if the machine has no room for `bytes` of host memory because
 * device and host share its memory. */
static bool is_allowed(const char *api, size_t bytes)
{
    const struct spw_stream_info *here = spw_program_stream_current();
    struct spw_device *device = here != NULL ? spw_device_at(here->ordinal) : NULL;
    struct spw_pool *pool;

    if (device == NULL || SPW_LIKELY(spw_device_allows(device, bytes))) {
        return true;
    }
    pool = spw_device_pool(device);
    if (pool != NULL) {
        (void)spw_serve_account_oom(device, pool, api, bytes, spw_call_site(api), SPW_E_NO_MEMORY);
    }
    return pool == NULL;
}

CUresult spw_serve_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    CUresult result;

    if (!is_allowed("cuMemAllocManaged", bytesize)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    SPW_FORWARD(result, spw_process_driver()->cuMemAllocManaged(dptr, bytesize, flags));
    if (result == CUDA_SUCCESS) {
        spw_submit_indirect_mapped(*dptr, bytesize);
    }
    return result;
}

CUresult spw_serve_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    if (!is_allowed("cuMemHostAlloc", bytesize)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return pinned(spw_process_driver()->cuMemHostAlloc(pp, bytesize, Flags), "cuMemHostAlloc", pp,
                  bytesize);
}

CUresult spw_serve_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    if (!is_allowed("cuMemAllocHost", bytesize)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return pinned(spw_process_driver()->cuMemAllocHost_v2(pp, bytesize), "cuMemAllocHost", pp,
                  bytesize);
}

CUresult spw_serve_cuMemFreeHost(void *p)
{
    struct spw_passed_free passed;

    spw_serve_account_free_begin((CUdeviceptr)(uintptr_t)p, &passed);
    return spw_serve_account_free_end(&passed, spw_process_driver()->cuMemFreeHost(p));
}

CUresult spw_serve_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    return pinned(spw_process_driver()->cuMemHostRegister_v2(p, bytesize, Flags),
                  "cuMemHostRegister", &p, bytesize);
}

CUresult spw_serve_cuMemHostUnregister(void *p)
{
    struct spw_passed_free passed;

    spw_serve_account_free_begin((CUdeviceptr)(uintptr_t)p, &passed);
    return spw_serve_account_free_end(&passed, spw_process_driver()->cuMemHostUnregister(p));
}
