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
    pthread_mutex_lock(&spw_hook.lock);
    spw_stream_lock();
    spw_capture_lock();
    spw_ledger_lock();
    spw_vmm_lock();
    spw_site_lock();
    spw_names_lock();
    for (int i = 0; i < spw_hook.device_count; i++) {
        struct spw_pool *pool = spw_device_opened(&spw_hook.devices[i]);

        if (pool != NULL) {
            spw_pool_lock(pool);
        }
    }
    spw_indirect_lock();
    spw_tensor_map_lock();
}

static void release(void)
{
    if (is_drivers_own()) {
        return;
    }
    spw_tensor_map_unlock();
    spw_indirect_unlock();
    for (int i = spw_hook.device_count - 1; i >= 0; i--) {
        struct spw_pool *pool = spw_device_opened(&spw_hook.devices[i]);

        if (pool != NULL) {
            spw_pool_unlock(pool);
        }
    }
    spw_names_unlock();
    spw_site_unlock();
    spw_vmm_unlock();
    spw_ledger_unlock();
    spw_capture_unlock();
    spw_stream_unlock();
    pthread_mutex_unlock(&spw_hook.lock);
}

static void child(void)
{
    if (is_drivers_own()) {
        atomic_store(&spw_hook.state, SPW_HOOK_OFF);
        return;
    }
    release();
    if (atomic_load(&spw_hook.state) != SPW_HOOK_RUNNING) {
        return;
    }
    atomic_store(&spw_hook.state, SPW_HOOK_CHILD);
    spw_gate_reset();
    /* Before the pools are closed, which counts: the parent's figures are not touched. */
    spw_seam.forget();
    for (int i = 0; i < spw_hook.device_count; i++) {
        struct spw_device *device = &spw_hook.devices[i];

        spw_device_close(device, SPW_CLOSING_FORKED);
        atomic_store(&device->failed, false);
        for (int j = 0; j < SPW_HOOK_DEVICES; j++) {
            atomic_store(&device->access[j], 0);
        }
    }
    spw_stream_reset();
    spw_capture_reset();
    spw_ledger_reset();
    spw_indirect_reset();
    spw_tensor_map_reset();
    spw_vmm_reset();
    spw_seam.forget(); /* what closing counted */
}

void spw_fork_watch(void)
{
    if (!spw_hook.at_fork) {
        spw_hook.at_fork = pthread_atfork(prepare, release, child) == 0;
    }
}
