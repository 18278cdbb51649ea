/* Synchronisation. When the program waits for the device, the pools learn without a driver call
 * that the work on freed memory is complete. */
#include "serve/synchronize.h"

#include "device/contexts.h"
#include "device/device.h"
#include "device/lease.h"
#include "device/spill.h"
#include "program/stream.h"
#include "serve/handlers.h"

/* The clocks of the open pools when the wait began. A pool that is opened later has a higher
 * clock. */
struct moment {
    uint64_t clocks[SPW_DEVICES_MAX]; /* 0: there was no pool */
};

static void take_moment(struct moment *ret_moment)
{
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        ret_moment->clocks[i] = pool != NULL ? spw_pool_clock(pool) : 0;
    }
}

/* The lease is given up during the wait, so that a pool can be closed. */
#define WAIT(result, call)                                                                         \
    do {                                                                                           \
        spw_device_lease_leave();                                                                  \
        (result) = (call);                                                                         \
        spw_device_lease_enter();                                                                  \
    } while (0)

/* ---- streams ---- */

/* The stream is a copy, because the result of spw_program_stream_get is not valid after the
 * wait. */
static CUresult waited_for_stream(CUresult result, const struct moment *moment,
                                  const struct spw_stream *stream)
{
    for (int i = 0; i < spw_device_count() && result == CUDA_SUCCESS; i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL && moment->clocks[i] > 0) {
            spw_pool_synchronized(pool, stream, moment->clocks[i]);
            spw_device_idle(spw_device_at(i));
        }
    }
    return result;
}

#define SYNCHRONIZE_STREAM(handle, per_thread, call)                                               \
    do {                                                                                           \
        const struct spw_stream_info *info = spw_program_stream_get((handle), (per_thread));       \
        struct spw_driver *driver = spw_process_driver();                                          \
        struct spw_stream stream;                                                                  \
        struct moment moment;                                                                      \
        CUresult result;                                                                           \
                                                                                                   \
        if (info == NULL) {                                                                        \
            return driver->call;                                                                   \
        }                                                                                          \
        stream = info->stream;                                                                     \
        take_moment(&moment);                                                                      \
        WAIT(result, driver->call);                                                                \
        return waited_for_stream(result, &moment, &stream);                                        \
    } while (0)

CUresult spw_serve_cuStreamSynchronize(CUstream hStream)
{
    SYNCHRONIZE_STREAM(hStream, false, cuStreamSynchronize(hStream));
}

CUresult spw_serve_cuStreamSynchronize_ptsz(CUstream hStream)
{
    SYNCHRONIZE_STREAM(hStream, true, cuStreamSynchronize_ptsz(hStream));
}

/* ---- contexts ---- */

static bool is_only_context(int ordinal)
{
    return spw_device_contexts_count(ordinal) == 1;
}

static void rest(int ordinal, const struct moment *moment)
{
    struct spw_pool *pool = spw_device_opened(spw_device_at(ordinal));

    if (pool != NULL && moment->clocks[ordinal] > 0) {
        spw_pool_synchronized(pool, NULL, moment->clocks[ordinal]);
        spw_device_idle(spw_device_at(ordinal));
    }
}

/* Records that all work of a context is done. Its streams may have freed memory of any device. */
static void context_rests(CUcontext context, const struct moment *moment)
{
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL && moment->clocks[i] > 0) {
            spw_pool_context_synchronized(pool, context, moment->clocks[i]);
        }
    }
}

/* If a device has only one known context, all work that uses the device's memory is in this
 * context, unless other devices use the memory. */
static CUresult waited_for_context(CUresult result, const struct moment *moment, int ordinal,
                                   CUcontext context)
{
    if (result != CUDA_SUCCESS || ordinal < 0) {
        return result;
    }
    if (is_only_context(ordinal) && !atomic_load(&spw_devices.uses_several)) {
        rest(ordinal, moment);
    } else {
        context_rests(context, moment);
    }
    return result;
}

CUresult spw_serve_cuCtxSynchronize(void)
{
    const struct spw_stream_info *here = spw_program_stream_current();
    int ordinal = here != NULL ? here->ordinal : -1;
    CUcontext context = here != NULL ? here->stream.context : NULL;
    struct moment moment;
    CUresult result;

    take_moment(&moment);
    WAIT(result, spw_process_driver()->cuCtxSynchronize());
    return waited_for_context(result, &moment, ordinal, context);
}

CUresult spw_serve_cuCtxSynchronize_v2(CUcontext ctx)
{
    int ordinal = ctx != NULL ? spw_program_stream_ordinal(ctx) : -1;
    struct moment moment;
    CUresult result;

    take_moment(&moment);
    WAIT(result, spw_process_driver()->cuCtxSynchronize_v2(ctx));
    return waited_for_context(result, &moment, ordinal, ctx);
}

/* ---- blocks ---- */

/* Waits with a fence for all work that was submitted to the device. The fence is recorded under the
 * pool's lock, and a capture that is about to begin waits for this lock. The driver's own function
 * for waiting would break a capture that another thread begins during the wait. */
static enum spw_err await_device(struct spw_pool *pool)
{
    enum spw_err err;
    void *fence;

    err = spw_pool_fence_record(pool, /* stream */ NULL, &fence);
    if (err == SPW_OK) {
        err = spw_pool_fence_wait(pool, fence);
        spw_pool_fence_drop(pool, fence);
    }
    return err;
}

CUresult spw_serve_synchronize_block(CUdeviceptr address)
{
    struct spw_block block = {0};
    struct spw_pool *pool;
    const struct spw_device *device = spw_device_owner(address, &pool);
    struct moment moment;
    enum spw_err err;

    if (device == NULL || atomic_load(&spw_process_driver()->captures_open) > 0 ||
        !spw_pool_find(pool, address, &block)) {
        return CUDA_SUCCESS;
    }
    take_moment(&moment);
    err = await_device(pool);
    if (err == SPW_E_AGAIN || err == SPW_E_METADATA_NOMEM) {
        return CUDA_SUCCESS; /* a capture has begun, or there is no memory for a record */
    }
    if (err == SPW_OK) {
        rest(device->ordinal, &moment); /* the fence covers all work that may use the memory */
    }
    return (CUresult)spw_err_to_driver(err);
}
