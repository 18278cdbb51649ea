#include "track/capture.h"

#include "common/lock.h"
#include "pool/pool.h"
#include "track/device.h"
#include "track/graph.h"
#include "track/process.h"
#include "track/spill.h"
#include "track/stream.h"

#include <pthread.h>
#include <stddef.h>

static size_t find(uint64_t id)
{
    size_t i = 0;

    while (i < spw_process.captures.count && spw_process.captures.open[i].id != id) {
        i++;
    }
    return i;
}

/* Waits until our own driver calls have ended that began before the capture was counted. They are
 * made under the lock of a pool or, when a pool is opened, under spw_locks.process. */
static void let_own_calls_end(void)
{
    spw_lock(&spw_locks.process);
    spw_unlock(&spw_locks.process);
    spw_track_graph_fix_all(); /* takes the lock of each pool */
}

bool spw_track_capture_begin(uint64_t id, CUstreamCaptureMode mode)
{
    bool fresh;

    for (int i = 0; i < spw_process.device_count; i++) {
        spw_track_spill_prepare(&spw_process.devices[i]);
    }
    spw_lock(&spw_locks.captures);
    fresh = find(id) == spw_process.captures.count;
    if (fresh) {
        atomic_fetch_add(&spw_track_driver()->captures_open, 1);
        if (spw_process.captures.count < SPW_CAPTURES) {
            spw_process.captures.open[spw_process.captures.count++] =
                (struct spw_capture){id, (uintptr_t)pthread_self(), mode};
        }
    }
    spw_unlock(&spw_locks.captures);
    if (fresh) {
        let_own_calls_end();
    }
    return fresh;
}

void spw_track_capture_end(uint64_t id)
{
    bool open;
    size_t i;

    spw_lock(&spw_locks.captures);
    i = find(id);
    open = i < spw_process.captures.count;
    if (open) {
        spw_process.captures.open[i] = spw_process.captures.open[--spw_process.captures.count];
        atomic_fetch_sub(&spw_track_driver()->captures_open, 1);
    }
    spw_unlock(&spw_locks.captures);
    if (open) {
        spw_track_graph_settle();
    }
}

CUresult spw_track_capture_ask(const struct spw_stream_info *info, bool *ret_capturing)
{
    struct spw_driver *driver = spw_track_driver();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = CUDA_SUCCESS;

    if (driver->cuStreamIsCapturing != NULL) {
        result = SPW_DRIVER_CALL(driver, info->ordinal, cuStreamIsCapturing, info->stream.handle,
                                 &status);
    }
    *ret_capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return result;
}

/* The capture mode of the calling thread, which the scope of our own calls finds. */
static CUstreamCaptureMode thread_mode(void)
{
    struct spw_driver *driver = spw_track_driver();
    CUstreamCaptureMode mode;

    spw_driver_begin(driver, /* ordinal */ -1);
    mode = spw_driver_scope.relaxed ? spw_driver_scope.mode : CU_STREAM_CAPTURE_MODE_RELAXED;
    spw_driver_end(driver, /* ordinal */ -1);
    return mode;
}

bool spw_track_capture_forbids_this_thread(void)
{
    CUstreamCaptureMode mode = thread_mode();
    bool forbids = false;

    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    spw_lock(&spw_locks.captures);
    for (size_t i = 0; i < spw_process.captures.count; i++) {
        const struct spw_capture *open = &spw_process.captures.open[i];

        forbids |= open->thread == (uintptr_t)pthread_self()
                       ? open->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                       : open->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                             mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    }
    spw_unlock(&spw_locks.captures);
    return forbids;
}

void spw_track_capture_reset(void)
{
    spw_lock(&spw_locks.captures);
    spw_process.captures.count = 0;
    atomic_store(&spw_track_driver()->captures_open, 0);
    spw_unlock(&spw_locks.captures);
}
