/* Contexts and streams, as far as memory depends on them.
 *
 * Blocks belong to the context they were allocated in and go with it. When it is the last one seen
 * on its device, the whole pool goes, orderly and before the context, and the next use makes a new
 * one. At the end of the process everything goes by itself. */
#include "serve/contexts.h"

#include "track/capture.h"
#include "track/device.h"
#include "intercept/entry.h"
#include "track/stream.h"

#include <pthread.h>

/* ---- streams ---- */

CUresult spw_serve_cuStreamDestroy_v2(CUstream hStream)
{
    spw_track_stream_retire(hStream);
    return spw_track_driver()->cuStreamDestroy_v2(hStream);
}

CUresult spw_serve_cuStreamDestroy(CUstream hStream)
{
    spw_track_stream_retire(hStream);
    return spw_track_driver()->cuStreamDestroy(hStream);
}

/* ---- contexts that begin ---- */

/* A new context is current now: fences of its device have to cover it from here on. */
static CUresult began(CUresult result)
{
    if (result == CUDA_SUCCESS) {
        (void)spw_track_stream_current();
    }
    return result;
}

CUresult spw_serve_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    CUresult result;

    SPW_FORWARD(result, spw_track_driver()->cuCtxCreate_v2(pctx, flags, dev));
    return began(result);
}

CUresult spw_serve_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                  unsigned int flags, CUdevice dev)
{
    CUresult result;

    SPW_FORWARD(result,
                spw_track_driver()->cuCtxCreate_v3(pctx, paramsArray, numParams, flags, dev));
    return began(result);
}

CUresult spw_serve_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                                  unsigned int flags, CUdevice dev)
{
    CUresult result;

    SPW_FORWARD(result, spw_track_driver()->cuCtxCreate_v4(pctx, ctxCreateParams, flags, dev));
    return began(result);
}

/* ---- contexts that end ---- */

/* Waits for everything a context was given to do. */
static void synchronize(CUcontext context, int ordinal)
{
    struct spw_driver *driver = spw_track_driver();
    CUcontext popped;

    if (SPW_DRIVER_CALL(driver, ordinal, cuCtxPushCurrent_v2, context) == CUDA_SUCCESS) {
        (void)SPW_DRIVER_CALL0(driver, ordinal, cuCtxSynchronize);
        (void)SPW_DRIVER_CALL(driver, ordinal, cuCtxPopCurrent_v2, &popped);
    }
}

/* Closes the pool if its last context is gone. A dead context that is still current would make
 * every call fail, so it steps aside meanwhile. */
static bool close_without_context(struct spw_device *device, CUcontext context)
{
    struct spw_driver *driver = spw_track_driver();
    int ordinal = device->ordinal;
    CUcontext current = NULL;
    bool closed;

    (void)SPW_DRIVER_CALL(driver, ordinal, cuCtxGetCurrent, &current);
    if (current != context) {
        return spw_device_close_unused(device, SPW_CLOSING_CONTEXTS_GONE);
    }
    (void)SPW_DRIVER_CALL(driver, ordinal, cuCtxPopCurrent_v2, &current);
    closed = spw_device_close_unused(device, SPW_CLOSING_CONTEXTS_GONE);
    (void)SPW_DRIVER_CALL(driver, ordinal, cuCtxPushCurrent_v2, context);
    return closed;
}

/* Forgets a context of the device: before it goes, or, `gone`, after. */
static void lose(struct spw_device *device, CUcontext context, bool gone)
{
    bool closed;

    spw_track_stream_retire_context(context, gone);
    if (!gone) {
        synchronize(context, device->ordinal);
    }
    closed = gone ? close_without_context(device, context)
                  : spw_device_close_unused(device, SPW_CLOSING_ORDERLY);
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_device *other = &spw_process.devices[i];
        struct spw_pool *pool = other == device && closed ? NULL : spw_track_device_opened(other);

        if (pool != NULL) {
            spw_pool_free_context(pool, context);
        }
    }
    spw_track_device_forget_context(context);
}

/* The device of a context whose end matters; -1 when there is none. */
static int ordinal_of(CUcontext context)
{
    return context == NULL || atomic_load(&spw_process.leaving) ? -1
                                                                : spw_track_stream_ordinal(context);
}

static void lose_context(CUcontext context)
{
    int ordinal = ordinal_of(context);

    if (ordinal >= 0) {
        lose(&spw_process.devices[ordinal], context, false);
    }
}

CUresult spw_serve_cuCtxDestroy_v2(CUcontext ctx)
{
    lose_context(ctx);
    return spw_track_driver()->cuCtxDestroy_v2(ctx);
}

CUresult spw_serve_cuCtxDestroy(CUcontext ctx)
{
    lose_context(ctx);
    return spw_track_driver()->cuCtxDestroy(ctx);
}

/* A green context's memory is its primary context's; only its streams go. */
CUresult spw_serve_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct spw_driver *driver = spw_track_driver();
    CUcontext context = NULL;
    int ordinal = -1;

    if (driver->cuCtxFromGreenCtx != NULL &&
        SPW_DRIVER_CALL(driver, -1, cuCtxFromGreenCtx, &context, hCtx) == CUDA_SUCCESS) {
        ordinal = ordinal_of(context);
    }
    if (ordinal >= 0) {
        spw_track_stream_retire_context(context, false);
        synchronize(context, ordinal);
        spw_track_device_forget_context(context);
    }
    return driver->cuGreenCtxDestroy(hCtx);
}

/* ---- primary contexts ---- */

/* Held from before a primary context is released until it is known whether that was its end, and
 * its pool is closed: a thread that retains it again meanwhile would lose its blocks. No lock is
 * held when it is taken. A driver that calls back finds that the thread has it already. */
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool has_primary_lock __attribute__((tls_model("initial-exec")));

static bool enter_primary(void)
{
    if (has_primary_lock) {
        return false;
    }
    pthread_mutex_lock(&primary_lock);
    has_primary_lock = true;
    return true;
}

static void leave_primary(bool entered)
{
    if (entered) {
        has_primary_lock = false;
        pthread_mutex_unlock(&primary_lock);
    }
}

void spw_serve_context_reset(void)
{
    pthread_mutex_init(&primary_lock, NULL);
}

CUresult spw_serve_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    bool entered = enter_primary();
    CUresult result;

    SPW_FORWARD(result, spw_track_driver()->cuDevicePrimaryCtxRetain(pctx, dev));
    leave_primary(entered);
    return result;
}

static bool is_active(const struct spw_device *device)
{
    struct spw_driver *driver = spw_track_driver();
    unsigned int flags;
    int active = 0;

    return driver->cuDevicePrimaryCtxGetState != NULL &&
           SPW_DRIVER_CALL(driver, device->ordinal, cuDevicePrimaryCtxGetState, device->handle,
                           &flags, &active) == CUDA_SUCCESS &&
           active != 0;
}

/* The primary context of a device, if there is one and its end matters: NULL otherwise. */
static CUcontext primary_of(CUdevice dev)
{
    const struct spw_device *device = spw_track_device_of(dev);
    struct spw_driver *driver = spw_track_driver();
    CUcontext context = NULL;

    if (device != NULL && !atomic_load(&spw_process.leaving) && is_active(device) &&
        SPW_DRIVER_CALL(driver, device->ordinal, cuDevicePrimaryCtxRetain, &context, dev) ==
            CUDA_SUCCESS) {
        (void)SPW_DRIVER_CALL(driver, device->ordinal, cuDevicePrimaryCtxRelease_v2, dev);
    }
    return context;
}

CUresult spw_serve_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    bool entered = enter_primary();
    CUresult result;

    lose_context(primary_of(dev));
    result = spw_track_driver()->cuDevicePrimaryCtxReset_v2(dev);
    leave_primary(entered);
    return result;
}

CUresult spw_serve_cuDevicePrimaryCtxReset(CUdevice dev)
{
    bool entered = enter_primary();
    CUresult result;

    lose_context(primary_of(dev));
    result = spw_track_driver()->cuDevicePrimaryCtxReset(dev);
    leave_primary(entered);
    return result;
}

/* Whether a release is the last one is known only afterwards. */
static CUresult released(CUdevice dev, CUcontext primary, CUresult result)
{
    struct spw_device *device = spw_track_device_of(dev);

    if (result == CUDA_SUCCESS && primary != NULL && device != NULL && !is_active(device)) {
        lose(device, primary, true);
    }
    return result;
}

CUresult spw_serve_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    bool entered = enter_primary();
    CUcontext primary = primary_of(dev);
    CUresult result = released(dev, primary, spw_track_driver()->cuDevicePrimaryCtxRelease_v2(dev));

    leave_primary(entered);
    return result;
}

CUresult spw_serve_cuDevicePrimaryCtxRelease(CUdevice dev)
{
    bool entered = enter_primary();
    CUcontext primary = primary_of(dev);
    CUresult result = released(dev, primary, spw_track_driver()->cuDevicePrimaryCtxRelease(dev));

    leave_primary(entered);
    return result;
}
