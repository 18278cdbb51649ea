/* The end of contexts and streams. A block belongs to the context in use at its allocation, and is
 * freed with that context. Before the last known context of a device is destroyed, the pool of the
 * device is closed. The next use of the device opens another pool. At the end of the process
 * nothing is closed. */
#include "device/access.h"
#include "device/contexts.h"
#include "device/device.h"
#include "device/spill.h"
#include "graph/capture.h"
#include "ipc/table.h"
#include "migrate/move/barrier.h"
#include "program/stream.h"
#include "serve/account.h"
#include "serve/handlers.h"
#include "serve/imports.h"
#include "submit/arguments.h"
#include "system/lock.h"

/* ---- streams ---- */

/* Ends the capture of a stream. Retires the stream in the pools, unless it is `gone` with its
 * context. */
static void end_stream(const struct spw_stream_info *info, bool gone)
{
    spw_graph_capture_end(info->stream.id);
    if (!gone) {
        spw_device_retire_stream(&info->stream);
    }
}

static void retire_stream(CUstream handle)
{
    struct spw_stream_info info;

    spw_graph_capture_end(spw_graph_capture_unknown(handle));
    if (spw_program_stream_forget(handle, &info)) {
        end_stream(&info, /* gone */ false);
    }
}

/* Retires every stream of a context, and removes the context. `gone`: the context was already
 * destroyed, so its streams can no longer be passed to the driver. */
static void retire_context(CUcontext context, bool gone)
{
    struct spw_stream_info info;
    size_t cursor = 0;

    while (spw_program_stream_forget_one_of(context, &cursor, &info)) {
        end_stream(&info, gone);
    }
    if (spw_program_stream_forget_context(context, &info)) {
        end_stream(&info, gone);
    }
}

CUresult spw_serve_cuStreamDestroy_v2(CUstream hStream)
{
    retire_stream(hStream);
    return spw_process_driver()->cuStreamDestroy_v2(hStream);
}

CUresult spw_serve_cuStreamDestroy(CUstream hStream)
{
    retire_stream(hStream);
    return spw_process_driver()->cuStreamDestroy(hStream);
}

/* ---- contexts that end ---- */

/* Waits for all work of a context. */
static void synchronize(CUcontext context, int ordinal)
{
    struct spw_driver *driver = spw_process_driver();
    CUcontext popped;

    if (SPW_DRIVER_CALL(driver, ordinal, cuCtxPushCurrent_v2, context) == CUDA_SUCCESS) {
        (void)SPW_DRIVER_CALL0(driver, ordinal, cuCtxSynchronize);
        (void)SPW_DRIVER_CALL(driver, ordinal, cuCtxPopCurrent_v2, &popped);
    }
}

/* Closes the pool if its last context no longer exists. If a destroyed context is still current, it
 * is popped during this time, because every call would fail. */
static bool close_without_context(struct spw_device *device, CUcontext context)
{
    struct spw_driver *driver = spw_process_driver();
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

/* Removes a context of the device, before it is destroyed or after that (`gone`). */
static void lose(struct spw_device *device, CUcontext context, bool gone)
{
    bool closed;

    retire_context(context, gone);
    spw_serve_account_end_context(context);
    spw_ipc_table_end_context(context);
    if (!gone) {
        spw_device_end_context(context);
        synchronize(context, device->ordinal);
    }
    spw_serve_imports_end_context(context);
    closed = gone ? close_without_context(device, context)
                  : spw_device_close_unused(device, SPW_CLOSING_ORDERLY);
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *other = spw_device_at(i);
        struct spw_pool *pool = other == device && closed ? NULL : spw_device_opened(other);

        if (pool != NULL) {
            spw_pool_free_context(pool, context);
        }
    }
    spw_submit_arguments_forget_layouts();
    spw_device_access_forget_context(context);
    spw_device_forget_context(context);
}

/* Returns the ordinal of a context's device; -1 if nothing must be done at the end of the
 * context. */
static int ordinal_of(CUcontext context)
{
    return context == NULL || spw_process_is_leaving() ? -1 : spw_program_stream_ordinal(context);
}

/* Waits for the end of a pause, because a pause moves memory in the contexts. Called without a
 * lock. */
static void await_pause(void)
{
    if (!spw_process_is_leaving()) {
        spw_migrate_barrier_await_end();
    }
}

static void lose_context(CUcontext context)
{
    int ordinal = ordinal_of(context);

    if (ordinal >= 0) {
        lose(spw_device_at(ordinal), context, false);
    }
}

/* The memory of a green context belongs to its primary context, so only its streams end. */
CUresult spw_serve_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct spw_driver *driver = spw_process_driver();
    CUcontext context = NULL;
    int ordinal = -1;

    if (driver->cuCtxFromGreenCtx != NULL &&
        SPW_DRIVER_CALL(driver, -1, cuCtxFromGreenCtx, &context, hCtx) == CUDA_SUCCESS) {
        ordinal = ordinal_of(context);
    }
    if (ordinal >= 0) {
        retire_context(context, false);
        synchronize(context, ordinal);
        spw_submit_arguments_forget_layouts();
        spw_device_forget_context(context);
    }
    return driver->cuGreenCtxDestroy(hCtx);
}

/* ---- primary contexts ---- */

/* spw_locks.primary is held during the release of a primary context. If this was the last release,
 * the lock is held until the pool is closed: a thread that retained the context in the meantime
 * would lose its blocks. A thread records that it holds the lock, because the driver may call
 * back. */
static _Thread_local bool has_primary_lock __attribute__((tls_model("initial-exec")));

static bool enter_primary(void)
{
    if (has_primary_lock) {
        return false;
    }
    spw_lock(&spw_locks.primary);
    has_primary_lock = true;
    return true;
}

static void leave_primary(bool entered)
{
    if (entered) {
        has_primary_lock = false;
        spw_unlock(&spw_locks.primary);
    }
}

/* Includes the context in the device's fences, because calls without a handler may submit work in
 * it. */
CUresult spw_serve_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    bool entered = enter_primary();
    CUresult result;

    SPW_FORWARD(result, spw_process_driver()->cuDevicePrimaryCtxRetain(pctx, dev));
    if (result == CUDA_SUCCESS && pctx != NULL) {
        (void)ordinal_of(*pctx);
    }
    leave_primary(entered);
    return result;
}

static bool is_active(const struct spw_device *device)
{
    struct spw_driver *driver = spw_process_driver();
    unsigned int flags;
    int active = 0;

    return driver->cuDevicePrimaryCtxGetState != NULL &&
           SPW_DRIVER_CALL(driver, device->ordinal, cuDevicePrimaryCtxGetState, device->handle,
                           &flags, &active) == CUDA_SUCCESS &&
           active != 0;
}

/* Returns the primary context of a device; NULL if it is not active, or if nothing must be done at
 * its end. */
static CUcontext primary_of(CUdevice dev)
{
    const struct spw_device *device = spw_device_of(dev);
    struct spw_driver *driver = spw_process_driver();
    CUcontext context = NULL;

    if (device != NULL && !spw_process_is_leaving() && is_active(device) &&
        SPW_DRIVER_CALL(driver, device->ordinal, cuDevicePrimaryCtxRetain, &context, dev) ==
            CUDA_SUCCESS) {
        (void)SPW_DRIVER_CALL(driver, device->ordinal, cuDevicePrimaryCtxRelease_v2, dev);
    }
    return context;
}

/* Like `release` below, `reset` is the driver's function in the version that was called. */
static CUresult reset_primary(CUdevice dev, CUresult (*reset)(CUdevice))
{
    CUresult result;
    bool entered;

    await_pause();
    entered = enter_primary();
    lose_context(primary_of(dev));
    result = reset(dev);
    leave_primary(entered);
    return result;
}

CUresult spw_serve_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return reset_primary(dev, spw_process_driver()->cuDevicePrimaryCtxReset_v2);
}

CUresult spw_serve_cuDevicePrimaryCtxReset(CUdevice dev)
{
    return reset_primary(dev, spw_process_driver()->cuDevicePrimaryCtxReset);
}

/* Whether a release was the last one is known only after the release. */
static CUresult release_primary(CUdevice dev, CUresult (*release)(CUdevice))
{
    struct spw_device *device = spw_device_of(dev);
    CUcontext primary;
    CUresult result;
    bool entered;

    await_pause();
    entered = enter_primary();
    primary = primary_of(dev);
    result = release(dev);
    if (result == CUDA_SUCCESS && primary != NULL && device != NULL && !is_active(device)) {
        lose(device, primary, true);
    }
    leave_primary(entered);
    return result;
}

CUresult spw_serve_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return release_primary(dev, spw_process_driver()->cuDevicePrimaryCtxRelease_v2);
}

CUresult spw_serve_cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return release_primary(dev, spw_process_driver()->cuDevicePrimaryCtxRelease);
}

/* ---- contexts of the program's own ---- */

/* In this way, the driver refuses to destroy a primary context, whose memory then stays. */
static void lose_own_context(CUcontext context)
{
    int ordinal = ordinal_of(context);
    bool entered, primary;

    if (ordinal < 0) {
        return;
    }
    await_pause();
    entered = enter_primary();
    primary = context == primary_of(spw_device_at(ordinal)->handle);
    leave_primary(entered);
    if (!primary) {
        lose(spw_device_at(ordinal), context, false);
    }
}

CUresult spw_serve_cuCtxDestroy_v2(CUcontext ctx)
{
    lose_own_context(ctx);
    return spw_process_driver()->cuCtxDestroy_v2(ctx);
}

CUresult spw_serve_cuCtxDestroy(CUcontext ctx)
{
    lose_own_context(ctx);
    return spw_process_driver()->cuCtxDestroy(ctx);
}

/* ---- contexts that are counted ---- */

CUresult spw_serve_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    CUresult result = spw_process_driver()->cuCtxAttach(pctx, flags);

    if (result == CUDA_SUCCESS) {
        (void)ordinal_of(*pctx);
        spw_device_contexts_attach(*pctx);
    }
    return result;
}

/* The last detach destroys the context. The driver refuses all contexts except the current one. */
CUresult spw_serve_cuCtxDetach(CUcontext ctx)
{
    const struct spw_stream_info *here = spw_program_stream_current();

    if (here == NULL || here->stream.context != ctx) {
        return spw_process_driver()->cuCtxDetach(ctx);
    }
    if (spw_device_contexts_detach(ctx)) {
        lose_own_context(ctx);
    }
    return spw_process_driver()->cuCtxDetach(ctx);
}
