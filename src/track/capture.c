#include "track/capture.h"

#include "common/lock.h"
#include "track/device.h"
#include "track/graph.h"
#include "track/process.h"
#include "track/spill.h"
#include "track/stream.h"
#include "pool/pool.h"

#include <stddef.h>

static size_t find(uint64_t id)
{
    size_t i = 0;

    while (i < spw_process.captures.count && spw_process.captures.ids[i] != id) {
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

bool spw_track_capture_begin(uint64_t id)
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
            spw_process.captures.ids[spw_process.captures.count++] = id;
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
        spw_process.captures.ids[i] = spw_process.captures.ids[--spw_process.captures.count];
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

void spw_track_capture_reset(void)
{
    spw_lock(&spw_locks.captures);
    spw_process.captures.count = 0;
    atomic_store(&spw_track_driver()->captures_open, 0);
    spw_unlock(&spw_locks.captures);
}
