/* Allocation and free. */
#include "ipc/table.h"
#include "migrate/barrier.h"
#include "record/record.h"
#include "serve/account.h"
#include "serve/decision.h"
#include "serve/handlers.h"
#include "serve/placement.h"
#include "serve/synchronize.h"
#include "serve/take.h"
#include "track/arguments.h"
#include "track/caller.h"
#include "track/capture.h"
#include "track/device.h"
#include "track/indirect.h"
#include "track/native.h"
#include "track/request.h"
#include "track/site.h"
#include "track/spill.h"
#include "track/stream.h"

/* The outcome of a request while a pause lets nothing move and there is no room: it is to be tried
 * again. */
enum { TOO_EARLY = SPW_SERVE_PASSED + 1 };

/* Passes a request to the real driver because spillway failed. */
static enum spw_serve_outcome fail_open(const struct spw_track_request *request)
{
    spw_counter_add(&request->device->counters->failed_open, 1);
    return SPW_SERVE_PASSED;
}

/* The real driver allocates, up to the limit; blocks of the pool make room for it. `shares`: for a
 * library that shares the memory; else in observe mode. */
static __attribute__((noinline)) enum spw_serve_outcome
charge(struct spw_pool *pool, struct spw_track_request *request, bool shares)
{
    enum spw_err err = spw_track_spill_charge(
        request->device, pool, spw_serve_account_round(request->asked.bytes), request->asked.site);

    if (err == SPW_E_LIMIT) {
        (void)spw_serve_account_oom(request->device, pool, request->asked.api, request->asked.bytes,
                                    request->asked.site, err);
        return SPW_SERVE_REFUSED;
    }
    if (err == SPW_OK) {
        request->kind = SPW_LEDGER_CHARGED;
    }
    spw_counter_add(&request->device->counters->shared_allocs, shares);
    return SPW_SERVE_PASSED;
}

/* Serves a request for all the memory that was just reported as free. Programs ask for that to find
 * out how much they could have, and free it at once: PyTorch's cacheInfo for cudnn.benchmark
 * (c10/cuda/CUDAMallocAsyncAllocator.cpp). So the block gets no memory before work is submitted,
 * moves no other block, and is not counted until then. False when it cannot be served like that. */
static __attribute__((noinline)) bool alloc_all_free(const struct spw_track_request *request,
                                                     struct spw_result *ret_result)
{
    static const struct spw_pool_placement wish = {
        .limit_bytes = UINT64_MAX, .lazy = true, .uncounted = true};
    struct spw_track_request lazy = *request;
    uint64_t told = request->asked.bytes;

    lazy.asked.placement = &wish;
    return atomic_compare_exchange_strong(&request->device->told_free, &told, 0) &&
           spw_pool_alloc(request->pool, &lazy.asked, ret_result) == SPW_OK;
}

/* True for a request, in the order of a stream, for exactly what was last reported as free. */
static inline bool is_for_all_free(const struct spw_track_request *request)
{
    return SPW_UNLIKELY(request->asked.bytes ==
                        atomic_load_explicit(&request->device->told_free, memory_order_relaxed)) &&
           request->asked.stream != NULL;
}

/* Allocates on the device; when it is full, by spilling. */
static inline enum spw_err alloc_plainly(const struct spw_track_request *request,
                                         struct spw_result *ret_result)
{
    enum spw_err err;

    if (is_for_all_free(request) && !request->repeated && alloc_all_free(request, ret_result)) {
        return SPW_OK;
    }
    err = spw_pool_alloc(request->pool, &request->asked, ret_result);
    return SPW_UNLIKELY(err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY)
               ? spw_track_spill_alloc(request, err, ret_result)
               : err;
}

/* Allocates by the rule that matches, as far as its placement is possible. */
static __attribute__((noinline)) enum spw_err alloc_by_policy(struct spw_track_request *request,
                                                              struct spw_result *ret_result)
{
    const char *api = spw_track_call.fn == SPW_FN_COUNT ? request->asked.api
                                                        : spw_driver_symbol(spw_track_call.fn);
    struct spw_decision decision;
    enum spw_err err;

    if (!spw_serve_decision_make(request->device, request->asked.bytes, request->asked.site, api,
                                 &decision)) {
        return alloc_plainly(request, ret_result);
    }
    request->rule = spw_serve_decision_number(decision.rule);
    err = spw_serve_placement_alloc(request, &decision, ret_result);
    request->stays_on_host = decision.wish.on_host;
    return err;
}

static __attribute__((noinline)) void record(const struct spw_track_request *request,
                                             const struct spw_result *result)
{
    const struct spw_stream *stream = request->asked.stream;

    spw_record_alloc(&(struct spw_record_alloc){
        .device = request->device->ordinal,
        .stream = stream != NULL ? stream->id : 0,
        .address = result->address,
        .bytes = request->asked.bytes,
        .site = request->asked.site,
        .source = SPW_RECORD_POOL,
        /* The block may be larger than what was asked for. */
        .host_bytes =
            result->host_bytes < request->asked.bytes ? result->host_bytes : request->asked.bytes,
        .rule = request->rule,
    });
}

/* All blocks are told, since a migration must know what a call may write. A block that a rule has
 * put on the host never needs room on the device; one that is not counted yet may be an attempt. */
static __attribute__((noinline)) void tell_tier(struct spw_migrate *tier,
                                                const struct spw_track_request *request,
                                                const struct spw_result *result)
{
    uint64_t bytes = request->asked.bytes;
    uint32_t site = request->asked.site;

    if (result->uncounted || request->stays_on_host) {
        spw_migrate_entered(tier, result->address, bytes, site, request->stays_on_host);
    } else {
        spw_migrate_allocated(tier, result->address, bytes, site);
    }
}

static int take_once(struct spw_track_request *request, CUdeviceptr *ret_address)
{
    enum spw_caller caller = spw_track_caller();
    bool shares = caller == SPW_CALLER_SHARES;
    struct spw_result result;
    struct spw_pool *pool;
    enum spw_err err;

    if (SPW_UNLIKELY(caller == SPW_CALLER_PYTORCH)) {
        spw_track_ops.look();
    }
    spw_migrate_barrier_pass();
    pool = spw_track_device_pool(request->device);
    if (pool == NULL) {
        return fail_open(request);
    }
    request->pool = pool;
    request->asked.site = spw_track_site(request->asked.api);
    if (SPW_UNLIKELY(shares || spw_process.mode == SPW_MODE_OBSERVE)) {
        return charge(pool, request, shares);
    }
    if (SPW_UNLIKELY(atomic_load_explicit(&spw_process.policy.policy, memory_order_acquire) !=
                     NULL)) {
        err = alloc_by_policy(request, &result);
    } else {
        err = alloc_plainly(request, &result);
    }
    if (SPW_UNLIKELY(spw_process.check)) {
        spw_track_device_check(request->device, pool);
    }
    if (SPW_LIKELY(err == SPW_OK)) {
        struct spw_migrate *tier =
            SPW_UNLIKELY(spw_track_arguments_wanted()) ? atomic_load(&request->device->tier) : NULL;

        if (SPW_UNLIKELY(tier != NULL)) {
            tell_tier(tier, request, &result);
        }
        if (spw_record_active() && !result.uncounted) {
            record(request, &result);
        }
        spw_stats_grant(request->device->refusal, request->asked.bytes);
        *ret_address = result.address;
        return SPW_SERVE_TAKEN;
    }
    if ((err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY) && spw_migrate_barrier_holds_up()) {
        return TOO_EARLY;
    }
    if (err == SPW_E_LIMIT || err == SPW_E_NO_MEMORY || err == SPW_E_QUOTA) {
        if (request->repeated) {
            return SPW_SERVE_REFUSED;
        }
        (void)spw_serve_account_oom(request->device, pool, request->asked.api, request->asked.bytes,
                                    request->asked.site, err);
        return SPW_SERVE_REFUSED;
    }
    return err == SPW_E_AGAIN ? SPW_SERVE_REFUSED : fail_open(request);
}

enum spw_serve_outcome spw_serve_take(struct spw_track_request *request, CUdeviceptr *ret_address)
{
    int outcome;

    do {
        outcome = take_once(request, ret_address);
    } while (SPW_UNLIKELY(outcome == TOO_EARLY));
    return (enum spw_serve_outcome)outcome;
}

/* Accounts a request that the real driver has answered, with the size that was charged for it. */
static CUresult record_result(const struct spw_track_request *request, CUresult result,
                              const CUdeviceptr *address)
{
    struct spw_pool *pool = spw_track_device_opened(request->device);
    uint64_t bytes = spw_serve_account_round(request->asked.bytes);

    if (result == CUDA_SUCCESS) {
        spw_serve_account_allocated(
            *address,
            &(struct spw_ledger_entry){
                .kind = request->kind,
                .ordinal = request->device->ordinal,
                .bytes = bytes,
                .site = request->asked.site,
                /* Memory that was allocated in the order of a stream belongs to a pool. */
                .context = request->asked.stream == NULL ? request->asked.context : NULL,
            });
    } else if (request->kind == SPW_LEDGER_CHARGED && pool != NULL) {
        spw_pool_discharge(pool, bytes, request->asked.site);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            (void)spw_serve_account_oom(request->device, pool, request->asked.api, bytes,
                                        request->asked.site, SPW_E_NO_MEMORY);
        }
    }
    return result;
}

/* Accounts the real driver's answer to a request on a stream that could not be identified. */
static CUresult record_unknown_stream(CUresult result, const CUdeviceptr *address, uint64_t bytes)
{
    const struct spw_stream_info *here = result == CUDA_SUCCESS ? spw_track_stream_current() : NULL;
    struct spw_track_request request;

    if (here != NULL) {
        request = (struct spw_track_request){.device = &spw_process.devices[here->ordinal],
                                             .asked.bytes = bytes};
        (void)fail_open(&request);
        return record_result(&request, result, address);
    }
    return result;
}

/* ---- without a stream ---- */

CUresult spw_serve_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    const struct spw_stream_info *here =
        dptr != NULL && bytesize > 0 ? spw_track_stream_current() : NULL;
    struct spw_driver *driver = spw_track_driver();
    struct spw_track_request request;
    enum spw_serve_outcome outcome;
    CUresult result;

    if (here == NULL) {
        return driver->cuMemAlloc_v2(dptr, bytesize);
    }
    request = (struct spw_track_request){.device = &spw_process.devices[here->ordinal],
                                         .asked.context = here->stream.context,
                                         .asked.bytes = bytesize,
                                         .asked.api = "cuMemAlloc"};
    if (SPW_UNLIKELY(spw_track_native_is_refused())) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    outcome = spw_track_capture_forbids() ? SPW_SERVE_PASSED : spw_serve_take(&request, dptr);
    if (SPW_LIKELY(outcome != SPW_SERVE_PASSED)) {
        return outcome == SPW_SERVE_TAKEN ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    SPW_FORWARD(result, driver->cuMemAlloc_v2(dptr, bytesize));
    return record_result(&request, result, dptr);
}

/* The pitch that NVIDIA's devices use: it suits every texture and element size. */
enum { PITCH_BYTES = 512 };

CUresult spw_serve_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                      size_t Height, unsigned int ElementSizeBytes)
{
    bool sound = dptr != NULL && pPitch != NULL && WidthInBytes > 0 && Height > 0 &&
                 (ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16) &&
                 WidthInBytes <= (SIZE_MAX - PITCH_BYTES) / Height;
    const struct spw_stream_info *here = sound ? spw_track_stream_current() : NULL;
    size_t pitch = (WidthInBytes + PITCH_BYTES - 1) & ~(size_t)(PITCH_BYTES - 1);
    struct spw_driver *driver = spw_track_driver();
    struct spw_track_request request;
    enum spw_serve_outcome outcome;
    CUresult result;

    if (here == NULL || pitch > SIZE_MAX / Height) {
        return driver->cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    }
    request = (struct spw_track_request){.device = &spw_process.devices[here->ordinal],
                                         .asked.context = here->stream.context,
                                         .asked.bytes = pitch * Height,
                                         .asked.api = "cuMemAllocPitch"};
    outcome = spw_track_capture_forbids() ? SPW_SERVE_PASSED : spw_serve_take(&request, dptr);
    if (outcome == SPW_SERVE_TAKEN) {
        *pPitch = pitch;
        return CUDA_SUCCESS;
    }
    if (outcome == SPW_SERVE_REFUSED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    SPW_FORWARD(result,
                driver->cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes));
    return record_result(&request, result, dptr);
}

/* ---- on a stream ---- */

/* Serves a stream-ordered request. `named`: the memory pool that the call names; NULL: the current
 * pool of the stream's device. ret_request->device is NULL when the stream is unknown. */
static enum spw_serve_outcome take_ordered(CUdeviceptr *dptr, size_t bytes, CUmemoryPool named,
                                           CUstream handle, bool per_thread,
                                           struct spw_track_request *ret_request)
{
    const struct spw_stream_info *info = spw_track_stream_get(handle, per_thread);
    CUmemoryPool pool = named, standard;
    struct spw_device *device;
    bool capturing = false;

    ret_request->device = NULL;
    if (info == NULL || dptr == NULL || bytes == 0) {
        return SPW_SERVE_PASSED;
    }
    device = &spw_process.devices[info->ordinal];
    standard = spw_track_device_default_pool(device);
    if (pool == NULL) {
        pool = atomic_load_explicit(&device->current_pool, memory_order_relaxed);
        pool = pool == NULL ? standard : pool;
    }
    if (SPW_UNLIKELY(pool != standard)) {
        /* The default pool of another device is served, too. */
        struct spw_device *other = spw_track_device_of_pool(pool);

        device = other != NULL ? other : device;
        standard = spw_track_device_default_pool(device);
    }
    *ret_request = (struct spw_track_request){
        .device = device,
        .asked.stream = &info->stream,
        .asked.context = info->stream.context,
        .asked.bytes = bytes,
        .asked.api = named == NULL ? "cuMemAllocAsync" : "cuMemAllocFromPoolAsync",
    };
    if (SPW_UNLIKELY(pool == NULL || pool != standard)) {
        spw_counter_add(&device->counters->foreign_pool_allocs, 1);
        return SPW_SERVE_PASSED;
    }
    if (spw_track_capture_status(info, &capturing) != CUDA_SUCCESS || capturing) {
        spw_counter_add(&device->counters->captured_allocs, 1);
        return SPW_SERVE_PASSED;
    }
    return spw_serve_take(ret_request, dptr);
}

/* The body of a handler of stream-ordered allocations; `call` is the real call. */
#define ALLOC_ORDERED(dptr, bytes, pool, stream, per_thread, call)                                 \
    do {                                                                                           \
        struct spw_driver *driver = spw_track_driver();                                            \
        struct spw_track_request request;                                                          \
        enum spw_serve_outcome outcome;                                                            \
        CUresult result;                                                                           \
                                                                                                   \
        outcome = take_ordered((dptr), (bytes), (pool), (stream), (per_thread), &request);         \
        if (SPW_LIKELY(outcome != SPW_SERVE_PASSED)) {                                             \
            return outcome == SPW_SERVE_TAKEN ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;           \
        }                                                                                          \
        SPW_FORWARD(result, driver->call);                                                         \
        return request.device == NULL ? record_unknown_stream(result, (dptr), (bytes))             \
                                      : record_result(&request, result, (dptr));                   \
    } while (0)

CUresult spw_serve_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    ALLOC_ORDERED(dptr, bytesize, NULL, hStream, false, cuMemAllocAsync(dptr, bytesize, hStream));
}

CUresult spw_serve_cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    ALLOC_ORDERED(dptr, bytesize, NULL, hStream, true,
                  cuMemAllocAsync_ptsz(dptr, bytesize, hStream));
}

CUresult spw_serve_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                           CUstream hStream)
{
    if (pool == NULL) {
        return spw_track_driver()->cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
    }
    ALLOC_ORDERED(dptr, bytesize, pool, hStream, false,
                  cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream));
}

CUresult spw_serve_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize,
                                                CUmemoryPool pool, CUstream hStream)
{
    if (pool == NULL) {
        return spw_track_driver()->cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream);
    }
    ALLOC_ORDERED(dptr, bytesize, pool, hStream, true,
                  cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream));
}

/* ---- free ---- */

/* Frees a block of ours in the order of a stream; `stream` NULL: after all work that was submitted
 * to the device. */
CUresult spw_serve_free_block(const struct spw_device *device, struct spw_pool *pool,
                              CUdeviceptr address, const struct spw_stream *stream)
{
    struct spw_migrate *tier =
        SPW_UNLIKELY(spw_track_arguments_wanted()) ? atomic_load(&device->tier) : NULL;
    enum spw_err err;

    if (SPW_UNLIKELY(tier != NULL)) {
        spw_migrate_freed(tier, address);
        spw_track_indirect_freed(address);
    }
    if (spw_record_active()) {
        spw_record_free(device->ordinal, stream != NULL ? stream->id : 0, address);
    }
    if (SPW_UNLIKELY(atomic_load_explicit(&spw_ipc_exports, memory_order_relaxed) > 0)) {
        spw_ipc_table_remove(address);
    }
    err = spw_pool_free(pool, address, stream);

    if (SPW_UNLIKELY(spw_process.check)) {
        spw_track_device_check(device, pool);
    }
    return SPW_LIKELY(err == SPW_OK) ? CUDA_SUCCESS : (CUresult)spw_err_to_driver(err);
}

CUresult spw_serve_cuMemFree_v2(CUdeviceptr dptr)
{
    CUresult result =
        SPW_UNLIKELY(spw_process.free_waits) ? spw_serve_synchronize_block(dptr) : CUDA_SUCCESS;
    struct spw_pool *pool;
    const struct spw_device *device = spw_track_device_owner(dptr, &pool);
    struct spw_passed_free passed;

    if (SPW_UNLIKELY(result != CUDA_SUCCESS)) {
        return result;
    }
    if (device == NULL) {
        spw_serve_account_free_begin(dptr, &passed);
        return spw_serve_account_free_end(&passed, spw_track_driver()->cuMemFree_v2(dptr));
    }
    return spw_serve_free_block(device, pool, dptr, NULL);
}

/* Frees a block of ours in the order of a stream; when the stream is unknown, in the order of the
 * whole device, which is later. */
static CUresult free_ordered(const struct spw_device *device, struct spw_pool *pool,
                             CUdeviceptr address, const struct spw_stream_info *info)
{
    bool capturing = false;
    CUresult result;

    if (SPW_UNLIKELY(info == NULL)) {
        return spw_serve_free_block(device, pool, address, NULL);
    }
    result = spw_track_capture_status(info, &capturing);
    if (SPW_UNLIKELY(result != CUDA_SUCCESS)) {
        return result;
    }
    if (SPW_UNLIKELY(capturing)) {
        /* A captured free must be of memory that the graph allocates. */
        return CUDA_ERROR_INVALID_VALUE;
    }
    return spw_serve_free_block(device, pool, address, &info->stream);
}

/* cuMemFreeAsync and its variant for per-thread default streams. */
static inline CUresult free_async(CUdeviceptr dptr, CUstream hStream, bool ptsz)
{
    struct spw_pool *pool;
    const struct spw_device *device = spw_track_device_owner(dptr, &pool);
    struct spw_passed_free passed;
    CUresult result;

    if (device == NULL) {
        spw_serve_account_free_begin(dptr, &passed);
        result = ptsz ? spw_track_driver()->cuMemFreeAsync_ptsz(dptr, hStream)
                      : spw_track_driver()->cuMemFreeAsync(dptr, hStream);
        return spw_serve_account_free_end(&passed, result);
    }
    return free_ordered(device, pool, dptr, spw_track_stream_get(hStream, ptsz));
}

CUresult spw_serve_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    return free_async(dptr, hStream, /* ptsz */ false);
}

CUresult spw_serve_cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    return free_async(dptr, hStream, /* ptsz */ true);
}
