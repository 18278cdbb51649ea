/* Allocation and free. */
#include "call/arrival.h"
#include "call/site.h"
#include "device/spill.h"
#include "ipc/table.h"
#include "migrate/move/barrier.h"
#include "policy/decision.h"
#include "record/record.h"
#include "serve/account.h"
#include "serve/handlers.h"
#include "serve/placement.h"
#include "serve/synchronize.h"
#include "serve/take.h"
#include "submit/indirect.h"

/* The outcome of a request that found no room while a pause prevents moves. The request is tried
 * again. */
enum { TOO_EARLY = SPW_SERVE_PASSED + 1 };

/* Passes a request to the real driver, because spillway failed. */
static enum spw_serve_outcome fail_open(const struct spw_call *call)
{
    spw_counter_add(&call->device->counters->failed_open, 1);
    return SPW_SERVE_PASSED;
}

static enum spw_serve_outcome refuse(const struct spw_call *call, enum spw_err err)
{
    (void)spw_serve_account_oom(call->device, call->pool, call->asked.api, call->asked.bytes,
                                call->asked.site, err);
    return SPW_SERVE_REFUSED;
}

/* Lets the real driver allocate, up to the limit. Blocks of the pool are moved to make room. Used
 * in observe mode, and for a library that shares the memory. */
static __attribute__((noinline)) enum spw_serve_outcome charge(struct spw_call *call)
{
    enum spw_err err = spw_device_charge(
        call->device, call->pool, spw_serve_account_round(call->asked.bytes), call->asked.site);

    if (err == SPW_E_LIMIT) {
        return refuse(call, err);
    }
    if (err == SPW_OK) {
        call->kind = SPW_LEDGER_CHARGED;
    }
    spw_counter_add(&call->device->counters->shared_allocs, call->caller == SPW_CALLER_SHARES);
    return SPW_SERVE_PASSED;
}

/* Serves a request for exactly the memory that was just reported as free. Programs make such a
 * request to find out how much they could have, and free the memory at once: PyTorch's cacheInfo
 * for cudnn.benchmark (c10/cuda/CUDAMallocAsyncAllocator.cpp). The block therefore gets no memory
 * before work is submitted, and moves no other block. It is not counted as live until then. Returns
 * false if the request cannot be served in this way. */
static __attribute__((noinline)) bool alloc_all_free(const struct spw_call *call,
                                                     struct spw_result *ret_result)
{
    static const struct spw_pool_placement placement = {
        .limit_bytes = UINT64_MAX, .lazy = true, .uncounted = true};
    struct spw_request lazy = call->asked;
    uint64_t reported = call->asked.bytes;

    lazy.placement = &placement;
    return atomic_compare_exchange_strong(&call->device->reported_free, &reported, 0) &&
           spw_pool_alloc(call->pool, &lazy, ret_result) == SPW_OK;
}

/* Returns true for a stream-ordered request of exactly the size that was last reported as free. */
static inline bool is_for_all_free(const struct spw_call *call)
{
    return SPW_UNLIKELY(call->asked.bytes ==
                        atomic_load_explicit(&call->device->reported_free, memory_order_relaxed)) &&
           call->asked.stream != NULL;
}

/* Allocates on the device. If the device is full, allocates by spilling. */
static inline enum spw_err alloc_plainly(const struct spw_call *call, struct spw_result *ret_result)
{
    enum spw_err err;

    if (is_for_all_free(call) && !call->repeated && alloc_all_free(call, ret_result)) {
        return SPW_OK;
    }
    err = spw_pool_alloc(call->pool, &call->asked, ret_result);
    return SPW_UNLIKELY(err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY)
               ? spw_serve_placement_refused(call, err, ret_result)
               : err;
}

/* Allocates by the matching rule, if its placement is possible. */
static __attribute__((noinline)) enum spw_err alloc_by_policy(struct spw_call *call,
                                                              struct spw_result *ret_result)
{
    struct spw_decision decision;
    enum spw_err err;

    if (!spw_policy_decision_make(&call->device->ruled, call->asked.bytes, call->asked.site,
                                  spw_call_api(call), &decision)) {
        return alloc_plainly(call, ret_result);
    }
    call->rule = spw_policy_decision_number(decision.rule);
    err = spw_serve_placement_alloc(call, &decision, ret_result);
    call->stays_on_host = decision.placement.on_host;
    return err;
}

static __attribute__((noinline)) void record(const struct spw_call *call,
                                             const struct spw_result *result)
{
    const struct spw_stream *stream = call->asked.stream;

    spw_record_alloc(&(struct spw_record_alloc){
        .device = call->device->ordinal,
        .stream = stream != NULL ? stream->id : 0,
        .address = result->address,
        .bytes = call->asked.bytes,
        .site = call->asked.site,
        .source = SPW_RECORD_POOL,
        /* The block may be larger than the request. */
        .host_bytes =
            result->host_bytes < call->asked.bytes ? result->host_bytes : call->asked.bytes,
        .rule = call->rule,
    });
}

/* Reports every block to the tier, because a migration must know the blocks that a call may write.
 * From two kinds of blocks, no later allocations are predicted. A block that a rule has placed on
 * the host never needs room on the device. An uncounted block may be freed at once. */
static __attribute__((noinline)) void
tell_tier(struct spw_migrate *tier, const struct spw_call *call, const struct spw_result *result)
{
    uint64_t bytes = call->asked.bytes;
    uint32_t site = call->asked.site;

    if (result->uncounted || call->stays_on_host) {
        spw_migrate_entered(tier, result->address, bytes, site, call->stays_on_host);
    } else {
        spw_migrate_allocated(tier, result->address, bytes, site);
    }
}

/* Reports a new block to the tier and the recording. */
static inline void announce(const struct spw_call *call, const struct spw_result *result)
{
    struct spw_migrate *tier = spw_call_tier(call);

    if (SPW_UNLIKELY(tier != NULL)) {
        tell_tier(tier, call, result);
    }
    if (call->recorded && !result->uncounted) {
        record(call, result);
    }
    spw_stats_grant(call->device->refusal, call->asked.bytes);
}

/* Returns the outcome after an error of the pool. */
static __attribute__((noinline)) int answer_error(const struct spw_call *call, enum spw_err err)
{
    bool full = err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY;

    if (full && spw_migrate_barrier_holds_up()) {
        return TOO_EARLY;
    }
    if (full || err == SPW_E_QUOTA) {
        return call->repeated ? SPW_SERVE_REFUSED : refuse(call, err);
    }
    return err == SPW_E_AGAIN ? SPW_SERVE_REFUSED : fail_open(call);
}

static inline int take_once(struct spw_call *call, CUdeviceptr *ret_address)
{
    struct spw_result result;
    enum spw_err err;

    if (!spw_call_ask(call)) {
        return fail_open(call);
    }
    if (SPW_UNLIKELY(call->observed || call->caller == SPW_CALLER_SHARES)) {
        return charge(call);
    }
    err = SPW_UNLIKELY(call->ruled) ? alloc_by_policy(call, &result) : alloc_plainly(call, &result);
    spw_call_check(call);
    if (SPW_UNLIKELY(err != SPW_OK)) {
        return answer_error(call, err);
    }
    announce(call, &result);
    *ret_address = result.address;
    return SPW_SERVE_TAKEN;
}

enum spw_serve_outcome spw_serve_take(struct spw_call *call, CUdeviceptr *ret_address)
{
    int outcome;

    do {
        outcome = take_once(call, ret_address);
    } while (SPW_UNLIKELY(outcome == TOO_EARLY));
    return (enum spw_serve_outcome)outcome;
}

/* Accounts for a request that the real driver has served, with the size that was charged for it. */
static CUresult record_result(const struct spw_call *call, CUresult result,
                              const CUdeviceptr *address)
{
    uint64_t bytes = spw_serve_account_round(call->asked.bytes);

    if (result == CUDA_SUCCESS) {
        spw_serve_account_allocated(
            *address,
            &(struct spw_ledger_entry){
                .kind = call->kind,
                .ordinal = call->device->ordinal,
                .bytes = bytes,
                .site = call->asked.site,
                /* Memory that was allocated in the order of a stream belongs to a memory pool. */
                .context = call->asked.stream == NULL ? call->asked.context : NULL,
            });
    } else if (call->kind == SPW_LEDGER_CHARGED) {
        spw_pool_discharge(call->pool, bytes, call->asked.site);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            (void)refuse(call, SPW_E_NO_MEMORY);
        }
    }
    return result;
}

/* Serves a request. Returns false if the real driver must serve it; *ret_result is then not set. */
static inline bool serve(struct spw_call *call, CUdeviceptr *ret_address, CUresult *ret_result)
{
    enum spw_serve_outcome outcome = spw_serve_take(call, ret_address);

    *ret_result = outcome == SPW_SERVE_TAKEN ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    return SPW_LIKELY(outcome != SPW_SERVE_PASSED);
}

/* ---- without a stream ---- */

CUresult spw_serve_cuMemAlloc_v2(struct spw_call *call, CUdeviceptr *dptr, size_t bytesize)
{
    CUresult result;

    if (call->device == NULL || dptr == NULL || bytesize == 0) {
        return call->driver->cuMemAlloc_v2(dptr, bytesize);
    }
    call->asked.bytes = bytesize;
    call->asked.api = "cuMemAlloc";
    if (SPW_UNLIKELY(call->denied)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!call->capturing && serve(call, dptr, &result)) {
        return result;
    }
    SPW_FORWARD(result, call->driver->cuMemAlloc_v2(dptr, bytesize));
    return record_result(call, result, dptr);
}

/* The pitch that NVIDIA's devices use. It is suitable for every texture and element size. */
enum { PITCH_BYTES = 512 };

CUresult spw_serve_cuMemAllocPitch_v2(struct spw_call *call, CUdeviceptr *dptr, size_t *pPitch,
                                      size_t WidthInBytes, size_t Height,
                                      unsigned int ElementSizeBytes)
{
    bool sound = dptr != NULL && pPitch != NULL && WidthInBytes > 0 && Height > 0 &&
                 (ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16) &&
                 WidthInBytes <= (SIZE_MAX - PITCH_BYTES) / Height;
    size_t pitch = (WidthInBytes + PITCH_BYTES - 1) & ~(size_t)(PITCH_BYTES - 1);
    CUresult result;

    if (call->device == NULL || !sound || pitch > SIZE_MAX / Height) {
        return call->driver->cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height,
                                                ElementSizeBytes);
    }
    call->asked.bytes = pitch * Height;
    call->asked.api = "cuMemAllocPitch";
    if (!call->capturing && serve(call, dptr, &result)) {
        if (result == CUDA_SUCCESS) {
            *pPitch = pitch;
        }
        return result;
    }
    SPW_FORWARD(result, call->driver->cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height,
                                                         ElementSizeBytes));
    return record_result(call, result, dptr);
}

/* ---- on a stream ---- */

/* Returns false, with a report, if the device has no memory of its own, and the machine no room for
 * a request that the driver would serve. Such requests count against no limit. */
static __attribute__((noinline)) bool may_pass(struct spw_call *call)
{
    if (spw_device_allows(call->device, call->asked.bytes)) {
        return true;
    }
    call->pool = spw_device_pool(call->device);
    call->asked.site = spw_call_site(call->asked.api);
    return call->pool == NULL || refuse(call, SPW_E_NO_MEMORY) != SPW_SERVE_REFUSED;
}

/* Serves a stream-ordered request. `named` is the memory pool that the call names; NULL: the
 * current pool of the stream's device. Returns false if the real driver must serve the request. */
static inline bool serve_ordered(struct spw_call *call, CUdeviceptr *dptr, size_t bytes,
                                 CUmemoryPool named, CUresult *ret_result)
{
    call->asked.bytes = bytes;
    call->asked.api = named == NULL ? "cuMemAllocAsync" : "cuMemAllocFromPoolAsync";
    if (SPW_UNLIKELY(call->device == NULL || dptr == NULL || bytes == 0)) {
        return false;
    }
    if (!spw_call_is_for_pool(call, named)) {
        *ret_result = CUDA_ERROR_OUT_OF_MEMORY;
        spw_counter_add(&call->device->counters->foreign_pool_allocs, 1);
        return !may_pass(call);
    }
    if (SPW_UNLIKELY(call->capturing || call->unusable != CUDA_SUCCESS)) {
        *ret_result = CUDA_ERROR_OUT_OF_MEMORY;
        spw_counter_add(&call->device->counters->captured_allocs, 1);
        return !may_pass(call);
    }
    return serve(call, dptr, ret_result);
}

/* Accounts for the real driver's result of a stream-ordered request. If the stream is unknown, the
 * memory belongs to the current device. */
static CUresult record_ordered(struct spw_call *call, CUresult result, const CUdeviceptr *address)
{
    if (call->device == NULL && result == CUDA_SUCCESS && spw_call_take_context(call)) {
        (void)fail_open(call);
    }
    return call->device != NULL ? record_result(call, result, address) : result;
}

/* `real` is the driver's function of the call. */
static inline CUresult alloc_async(struct spw_call *call, CUdeviceptr *dptr, size_t bytes,
                                   CUstream stream, __typeof__(cuMemAllocAsync) *real)
{
    CUresult result;

    if (SPW_LIKELY(serve_ordered(call, dptr, bytes, NULL, &result))) {
        return result;
    }
    SPW_FORWARD(result, real(dptr, bytes, stream));
    return record_ordered(call, result, dptr);
}

CUresult spw_serve_cuMemAllocAsync(struct spw_call *call, CUdeviceptr *dptr, size_t bytesize,
                                   CUstream hStream)
{
    return alloc_async(call, dptr, bytesize, hStream, call->driver->cuMemAllocAsync);
}

CUresult spw_serve_cuMemAllocAsync_ptsz(struct spw_call *call, CUdeviceptr *dptr, size_t bytesize,
                                        CUstream hStream)
{
    return alloc_async(call, dptr, bytesize, hStream, call->driver->cuMemAllocAsync_ptsz);
}

static CUresult alloc_from_pool(struct spw_call *call, CUdeviceptr *dptr, size_t bytes,
                                CUmemoryPool pool, CUstream stream,
                                __typeof__(cuMemAllocFromPoolAsync) *real)
{
    CUresult result;

    if (pool == NULL) {
        return real(dptr, bytes, pool, stream);
    }
    if (serve_ordered(call, dptr, bytes, pool, &result)) {
        return result;
    }
    SPW_FORWARD(result, real(dptr, bytes, pool, stream));
    return record_ordered(call, result, dptr);
}

CUresult spw_serve_cuMemAllocFromPoolAsync(struct spw_call *call, CUdeviceptr *dptr,
                                           size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    return alloc_from_pool(call, dptr, bytesize, pool, hStream,
                           call->driver->cuMemAllocFromPoolAsync);
}

CUresult spw_serve_cuMemAllocFromPoolAsync_ptsz(struct spw_call *call, CUdeviceptr *dptr,
                                                size_t bytesize, CUmemoryPool pool,
                                                CUstream hStream)
{
    return alloc_from_pool(call, dptr, bytesize, pool, hStream,
                           call->driver->cuMemAllocFromPoolAsync_ptsz);
}

/* ---- free ---- */

/* Like spw_serve_free_block, but inlined into the handlers. */
static inline CUresult free_block(const struct spw_call *call, CUdeviceptr address)
{
    const struct spw_stream *stream = call->asked.stream;
    struct spw_migrate *tier = spw_call_tier(call);
    enum spw_err err;

    if (SPW_UNLIKELY(tier != NULL)) {
        spw_migrate_freed(tier, address);
        spw_submit_indirect_freed(address);
    }
    if (call->recorded) {
        spw_record_free(call->device->ordinal, stream != NULL ? stream->id : 0, address);
    }
    if (SPW_UNLIKELY(spw_ipc_table_has_any())) {
        spw_ipc_table_remove(address);
    }
    err = spw_pool_free(call->pool, address, stream);
    spw_call_check(call);
    return SPW_LIKELY(err == SPW_OK) ? CUDA_SUCCESS : (CUresult)spw_err_to_driver(err);
}

CUresult spw_serve_free_block(const struct spw_call *call, CUdeviceptr address)
{
    return free_block(call, address);
}

CUresult spw_serve_cuMemFree_v2(struct spw_call *call, CUdeviceptr dptr)
{
    CUresult result = SPW_UNLIKELY(spw_process_settings()->free_waits)
                          ? spw_serve_synchronize_block(dptr)
                          : CUDA_SUCCESS;
    struct spw_passed_free passed;

    if (SPW_UNLIKELY(result != CUDA_SUCCESS)) {
        return result;
    }
    if (call->device == NULL) {
        spw_serve_account_free_begin(dptr, &passed);
        return spw_serve_account_free_end(&passed, call->driver->cuMemFree_v2(dptr));
    }
    return free_block(call, dptr);
}

/* Frees a block in the order of a stream. If the stream is unknown, frees it in the order of the
 * whole device, which is later. Other memory is freed by `real`, the driver's function of the
 * call. */
static inline CUresult free_async(const struct spw_call *call, CUdeviceptr address, CUstream stream,
                                  __typeof__(cuMemFreeAsync) *real)
{
    struct spw_passed_free passed;

    if (SPW_UNLIKELY(call->device == NULL)) {
        spw_serve_account_free_begin(address, &passed);
        return spw_serve_account_free_end(&passed, real(address, stream));
    }
    if (SPW_UNLIKELY(call->unusable != CUDA_SUCCESS)) {
        return call->unusable;
    }
    if (SPW_UNLIKELY(call->capturing)) {
        /* A capture can free only memory that the same graph allocates. */
        return CUDA_ERROR_INVALID_VALUE;
    }
    return free_block(call, address);
}

CUresult spw_serve_cuMemFreeAsync(struct spw_call *call, CUdeviceptr dptr, CUstream hStream)
{
    return free_async(call, dptr, hStream, call->driver->cuMemFreeAsync);
}

CUresult spw_serve_cuMemFreeAsync_ptsz(struct spw_call *call, CUdeviceptr dptr, CUstream hStream)
{
    return free_async(call, dptr, hStream, call->driver->cuMemFreeAsync_ptsz);
}
