#include "serve/direct.h"

#include "serve/handlers.h"
#include "serve/take.h"
#include "track/device.h"
#include "track/lease.h"
#include "track/spill.h"
#include "track/stream.h"

static enum spw_err result_of(enum spw_serve_outcome outcome)
{
    switch (outcome) {
    case SPW_SERVE_TAKEN:
        return SPW_OK;
    case SPW_SERVE_REFUSED:
        return SPW_E_NO_MEMORY;
    default:
        return SPW_E_UNSUPPORTED;
    }
}

/* The runtime would have told it of the block. */
static void tell_simulator(uint64_t address, uint64_t bytes)
{
    const struct spw_driver *driver = spw_track_driver();

    if (driver->simulated_block != NULL) {
        driver->simulated_block(address, bytes);
    }
}

static enum spw_err alloc(const struct spw_serve_request *request, uint64_t *ret_address)
{
    const struct spw_stream_info *info = spw_track_stream_get(request->stream, false);
    struct spw_track_request asked;
    CUdeviceptr address;
    enum spw_err err;

    if (info == NULL || info->ordinal != request->device) {
        return SPW_E_AGAIN;
    }
    asked = (struct spw_track_request){.device = &spw_process.devices[info->ordinal],
                                       .asked.stream = &info->stream,
                                       .asked.context = info->stream.context,
                                       .asked.bytes = request->bytes,
                                       .asked.api = request->api,
                                       .repeated = true};
    err = result_of(spw_serve_take(&asked, &address));
    if (SPW_LIKELY(err == SPW_OK)) {
        *ret_address = address;
        tell_simulator(address, request->bytes);
    }
    return err;
}

enum spw_err spw_serve_direct_alloc(const struct spw_serve_request *request, uint64_t *ret_address)
{
    enum spw_err err;

    if (!spw_track_enter(request->caller)) {
        return SPW_E_UNSUPPORTED;
    }
    spw_track_lease_enter();
    err = alloc(request, ret_address);
    spw_track_lease_leave();
    return err;
}

void spw_serve_direct_free(int device, CUstream stream, bool after_all, uint64_t address)
{
    const struct spw_stream_info *info;
    struct spw_pool *pool;

    if (!spw_track_serves()) {
        return;
    }
    spw_track_lease_enter();
    pool = spw_track_device_opened(&spw_process.devices[device]);
    if (pool != NULL) {
        tell_simulator(address, 0);
        info = after_all ? NULL : spw_track_stream_get(stream, false);
        (void)spw_serve_free_block(&spw_process.devices[device], pool, address,
                                   info != NULL && info->ordinal == device ? &info->stream : NULL);
    }
    spw_track_lease_leave();
}

void spw_serve_direct_trim(void)
{
    if (!spw_track_serves()) {
        return;
    }
    spw_track_lease_enter();
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            spw_track_spill_settle(&spw_process.devices[i]);
            (void)spw_pool_trim(pool, 0);
            (void)spw_pool_trim_host(pool);
        }
    }
    spw_track_lease_leave();
}

void spw_serve_direct_reset_peak(int device)
{
    struct spw_pool *pool;

    if (!spw_track_serves()) {
        return;
    }
    spw_track_lease_enter();
    pool = spw_track_device_opened(&spw_process.devices[device]);
    if (pool != NULL) {
        spw_pool_reset_reserved_peak(pool);
    }
    spw_track_lease_leave();
}

bool spw_serve_direct_share(uint64_t address, CUipcMemHandle *ret_handle)
{
    CUresult result = CUDA_ERROR_NOT_INITIALIZED;

    if (spw_track_serves()) {
        spw_track_lease_enter();
        result = spw_serve_cuIpcGetMemHandle(ret_handle, address);
        spw_track_lease_leave();
    }
    return result == CUDA_SUCCESS;
}
