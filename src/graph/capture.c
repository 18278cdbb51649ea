#include "graph/capture.h"

#include "device/spill.h"
#include "graph/graph.h"
#include "graph/state.h"
#include "pool/pool.h"
#include "system/lock.h"

#include <pthread.h>
#include <stddef.h>

static size_t find(uint64_t id)
{
    size_t i = 0;

    while (i < spw_graph.captures.count && spw_graph.captures.open[i].id != id) {
        i++;
    }
    return i;
}

/* Waits for the end of those of our own driver calls that began before the capture was counted.
 * Such calls are made under the lock of a pool or, when a pool is opened, under
 * spw_locks.process. */
static void let_own_calls_end(void)
{
    spw_lock(&spw_locks.process);
    spw_unlock(&spw_locks.process);
    spw_graph_fix_all(); /* takes the lock of each pool */
}

bool spw_graph_capture_begin(uint64_t id, CUstreamCaptureMode mode)
{
    bool fresh;

    for (int i = 0; i < spw_device_count(); i++) {
        spw_device_prepare(spw_device_at(i));
    }
    spw_lock(&spw_locks.captures);
    fresh = find(id) == spw_graph.captures.count;
    if (fresh) {
        atomic_fetch_add(&spw_process_driver()->captures_open, 1);
        if (spw_graph.captures.count < SPW_CAPTURES) {
            spw_graph.captures.open[spw_graph.captures.count++] =
                (struct spw_capture){id, (uintptr_t)pthread_self(), mode};
        }
    }
    spw_unlock(&spw_locks.captures);
    if (fresh) {
        let_own_calls_end();
    }
    return fresh;
}

void spw_graph_capture_end(uint64_t id)
{
    bool open;
    size_t i;

    spw_lock(&spw_locks.captures);
    i = find(id);
    open = i < spw_graph.captures.count;
    if (open) {
        spw_graph.captures.open[i] = spw_graph.captures.open[--spw_graph.captures.count];
        atomic_fetch_sub(&spw_process_driver()->captures_open, 1);
    }
    spw_unlock(&spw_locks.captures);
    if (open) {
        spw_graph_settle();
    }
}

CUresult spw_graph_capture_ask(const struct spw_stream_info *info, bool *ret_capturing)
{
    struct spw_driver *driver = spw_process_driver();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = CUDA_SUCCESS;

    if (driver->cuStreamIsCapturing != NULL) {
        result = SPW_DRIVER_CALL(driver, info->ordinal, cuStreamIsCapturing, info->stream.handle,
                                 &status);
    }
    *ret_capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return result;
}

/* The capture mode of the calling thread, as the scope of our own calls finds it. */
static CUstreamCaptureMode thread_mode(void)
{
    struct spw_driver *driver = spw_process_driver();
    CUstreamCaptureMode mode;

    spw_driver_begin(driver, /* ordinal */ -1);
    mode = spw_driver_scope.relaxed ? spw_driver_scope.mode : CU_STREAM_CAPTURE_MODE_RELAXED;
    spw_driver_end(driver, /* ordinal */ -1);
    return mode;
}

bool spw_graph_capture_forbids_this_thread(void)
{
    CUstreamCaptureMode mode = thread_mode();
    bool forbids = false;

    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    spw_lock(&spw_locks.captures);
    for (size_t i = 0; i < spw_graph.captures.count; i++) {
        const struct spw_capture *open = &spw_graph.captures.open[i];

        forbids |= open->thread == (uintptr_t)pthread_self()
                       ? open->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                       : open->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                             mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    }
    spw_unlock(&spw_locks.captures);
    return forbids;
}

void spw_graph_capture_reset(void)
{
    spw_lock(&spw_locks.captures);
    spw_graph.captures.count = 0;
    atomic_store(&spw_process_driver()->captures_open, 0);
    spw_unlock(&spw_locks.captures);
}
