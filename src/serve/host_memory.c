/* Page-locked host memory, which is accounted for the current device, and managed memory. The
 * driver allocates both. Kernels may read addresses from both. */
#include "call/site.h"
#include "common/size.h"
#include "device/device.h"
#include "device/spill.h"
#include "program/stream.h"
#include "serve/account.h"
#include "serve/handlers.h"
#include "submit/indirect.h"
#include "system/log.h"

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

/* The host memory that blocks of the program occupy. */
static uint64_t spilled_bytes(void)
{
    uint64_t bytes = 0;

    for (int i = 0; i < spw_device_count(); i++) {
        bytes += spw_counter_get(&spw_device_at(i)->counters->host_bytes);
    }
    return bytes;
}

/* Reports once that the driver refused page-locked memory while blocks occupy a part of it. */
static void tell_refused(size_t bytes)
{
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    char asked[SPW_SIZE_TEXT], held[SPW_SIZE_TEXT];
    uint64_t spilled = spilled_bytes();

    if (spilled > 0 && !atomic_flag_test_and_set(&reported)) {
        spw_log_always("the driver refused the program %s of page-locked memory; spilled blocks "
                       "occupy %s of host memory: a lower SPILLWAY_HOST_LIMIT leaves more",
                       spw_size_text(bytes, asked), spw_size_text(spilled, held));
    }
}

/* Returns true if a call that locks pages should be repeated: it was refused, and room was made. */
static bool may_repeat(CUresult result)
{
    return SPW_UNLIKELY(result == CUDA_ERROR_OUT_OF_MEMORY) && spw_device_make_host_room();
}

/* Calls the driver to lock pages of the host, and once more if room could be made. */
#define LOCK_PAGES(result, bytes, call)                                                            \
    do {                                                                                           \
        (result) = (call);                                                                         \
        if (may_repeat(result)) {                                                                  \
            (result) = (call);                                                                     \
        }                                                                                          \
        if (SPW_UNLIKELY((result) == CUDA_ERROR_OUT_OF_MEMORY)) {                                  \
            tell_refused(bytes);                                                                   \
        }                                                                                          \
    } while (0)

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
    CUresult result;

    if (!is_allowed("cuMemHostAlloc", bytesize)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    LOCK_PAGES(result, bytesize, spw_process_driver()->cuMemHostAlloc(pp, bytesize, Flags));
    return pinned(result, "cuMemHostAlloc", pp, bytesize);
}

CUresult spw_serve_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    CUresult result;

    if (!is_allowed("cuMemAllocHost", bytesize)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    LOCK_PAGES(result, bytesize, spw_process_driver()->cuMemAllocHost_v2(pp, bytesize));
    return pinned(result, "cuMemAllocHost", pp, bytesize);
}

CUresult spw_serve_cuMemFreeHost(void *p)
{
    struct spw_passed_free passed;

    spw_serve_account_free_begin((CUdeviceptr)(uintptr_t)p, &passed);
    return spw_serve_account_free_end(&passed, spw_process_driver()->cuMemFreeHost(p));
}

CUresult spw_serve_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    CUresult result;

    LOCK_PAGES(result, bytesize, spw_process_driver()->cuMemHostRegister_v2(p, bytesize, Flags));
    return pinned(result, "cuMemHostRegister", &p, bytesize);
}

CUresult spw_serve_cuMemHostUnregister(void *p)
{
    struct spw_passed_free passed;

    spw_serve_account_free_begin((CUdeviceptr)(uintptr_t)p, &passed);
    return spw_serve_account_free_end(&passed, spw_process_driver()->cuMemHostUnregister(p));
}
