#include "intercept/fork.h"

#include "track/capture.h"
#include "track/device.h"
#include "track/indirect.h"
#include "track/ledger.h"
#include "track/site.h"
#include "track/stream.h"
#include "track/tensor_map.h"
#include "serve/vmm.h"
#include "callsite/names.h"
#include "migrate/barrier.h"

#include <pthread.h>

/* The driver starts a helper of its own now and then, within a call of ours, whose locks we hold:
 * that child does not use CUDA. */
static bool is_drivers_own(void)
{
    return spw_driver_inside();
}

static void prepare(void)
{
    if (is_drivers_own()) {
        return;
    }
    pthread_mutex_lock(&spw_process.lock);
    spw_track_stream_lock();
    spw_track_capture_lock();
    spw_track_ledger_lock();
    spw_serve_vmm_lock();
    spw_callsite_lock();
    spw_callsite_names_lock();
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            spw_pool_lock(pool);
        }
    }
    spw_track_indirect_lock();
    spw_track_tensor_map_lock();
}

static void release(void)
{
    if (is_drivers_own()) {
        return;
    }
    spw_track_tensor_map_unlock();
    spw_track_indirect_unlock();
    for (int i = spw_process.device_count - 1; i >= 0; i--) {
        struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[i]);

        if (pool != NULL) {
            spw_pool_unlock(pool);
        }
    }
    spw_callsite_names_unlock();
    spw_callsite_unlock();
    spw_serve_vmm_unlock();
    spw_track_ledger_unlock();
    spw_track_capture_unlock();
    spw_track_stream_unlock();
    pthread_mutex_unlock(&spw_process.lock);
}

static void child(void)
{
    if (is_drivers_own()) {
        atomic_store(&spw_process.state, SPW_PROCESS_OFF);
        return;
    }
    release();
    if (atomic_load(&spw_process.state) != SPW_PROCESS_RUNNING) {
        return;
    }
    atomic_store(&spw_process.state, SPW_PROCESS_CHILD);
    spw_migrate_barrier_reset();
    /* Before the pools are closed, which counts: the parent's figures are not touched. */
    spw_seam.forget();
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_device *device = &spw_process.devices[i];

        spw_track_device_close(device, SPW_CLOSING_FORKED);
        atomic_store(&device->failed, false);
        for (int j = 0; j < SPW_DEVICES_MAX; j++) {
            atomic_store(&device->access[j], 0);
        }
    }
    spw_track_stream_reset();
    spw_track_capture_reset();
    spw_track_ledger_reset();
    spw_track_indirect_reset();
    spw_track_tensor_map_reset();
    spw_serve_vmm_reset();
    spw_seam.forget(); /* what closing counted */
}

void spw_intercept_fork_watch(void)
{
    if (!spw_process.at_fork) {
        spw_process.at_fork = pthread_atfork(prepare, release, child) == 0;
    }
}
