/* Waiting: when the program itself waits for the device, it tells which freed memory has no work
 * pending any more, at the price of no driver call. */
#include "track/device.h"
#include "intercept/entry.h"
#include "track/spill.h"
#include "track/stream.h"

/* How far every open pool had got when the wait began. */
struct moment {
    struct spw_pool *pools[SPW_DEVICES_MAX];
    uint64_t clocks[SPW_DEVICES_MAX];
};

static void take_moment(struct moment *ret_moment)
{
    for (int i = 0; i < spw_process.device_count; i++) {
        ret_moment->pools[i] = spw_track_device_opened(&spw_process.devices[i]);
        if (ret_moment->pools[i] != NULL) {
            ret_moment->clocks[i] = spw_pool_clock(ret_moment->pools[i]);
        }
    }
}

/* ---- streams ---- */

/* The stream is copied: what spw_track_stream_get returned does not outlive the wait. */
static CUresult waited_for_stream(CUresult result, const struct moment *moment,
                                  const struct spw_stream *stream)
{
    for (int i = 0; i < spw_process.device_count && result == CUDA_SUCCESS; i++) {
        if (moment->pools[i] != NULL) {
            spw_pool_synchronized(moment->pools[i], stream, moment->clocks[i]);
            spw_track_spill_rest(&spw_process.devices[i]);
        }
    }
    return result;
}

#define SYNCHRONIZE_STREAM(handle, per_thread, call)                                               \
    do {                                                                                           \
        const struct spw_stream_info *info = spw_track_stream_get((handle), (per_thread));         \
        struct spw_driver *driver = spw_track_driver();                                            \
        struct spw_stream stream;                                                                  \
        struct moment moment;                                                                      \
                                                                                                   \
        if (info == NULL) {                                                                        \
            return driver->call;                                                                   \
        }                                                                                          \
        stream = info->stream;                                                                     \
        take_moment(&moment);                                                                      \
        return waited_for_stream(driver->call, &moment, &stream);                                  \
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
    size_t cursor = 0;

    return spw_track_stream_next_context(ordinal, &cursor) != NULL &&
           spw_track_stream_next_context(ordinal, &cursor) == NULL;
}

/* A context's work is the whole device's when no other context was seen there. */
static CUresult waited_for_context(CUresult result, const struct moment *moment, int ordinal)
{
    if (result == CUDA_SUCCESS && ordinal >= 0 && moment->pools[ordinal] != NULL &&
        is_only_context(ordinal)) {
        spw_pool_synchronized(moment->pools[ordinal], NULL, moment->clocks[ordinal]);
        spw_track_spill_rest(&spw_process.devices[ordinal]);
    }
    return result;
}

CUresult spw_serve_cuCtxSynchronize(void)
{
    const struct spw_stream_info *here = spw_track_stream_current();
    int ordinal = here != NULL ? here->ordinal : -1;
    struct moment moment;

    take_moment(&moment);
    return waited_for_context(spw_track_driver()->cuCtxSynchronize(), &moment, ordinal);
}

CUresult spw_serve_cuCtxSynchronize_v2(CUcontext ctx)
{
    int ordinal = ctx != NULL ? spw_track_stream_ordinal(ctx) : -1;
    struct moment moment;

    take_moment(&moment);
    return waited_for_context(spw_track_driver()->cuCtxSynchronize_v2(ctx), &moment, ordinal);
}
