#include "track/process.h"

#include "common/lock.h"
#include "common/options.h"
#include "common/uncancelled.h"
#include "track/native.h"

#include <stdlib.h>

_Thread_local struct spw_outer_call spw_track_outer __attribute__((tls_model("initial-exec"))) = {
    .fn = SPW_FN_COUNT,
};

_Thread_local enum spw_track_native spw_track_native __attribute__((tls_model("initial-exec")));

struct spw_driver *spw_track_load(bool load)
{
    /* No lock, since the caller may hold the dynamic loader's: the first thread to finish wins. */
    struct spw_driver *mine = spw_driver_open(load);
    struct spw_driver *known = NULL;

    if (mine == NULL) {
        return load ? spw_driver_absent() : NULL;
    }
    if (!atomic_compare_exchange_strong(&spw_process.driver, &known, mine)) {
        spw_driver_discard(mine);
        return known;
    }
    return mine;
}

struct spw_driver *spw_track_loaded(void)
{
    struct spw_driver *driver = atomic_load_explicit(&spw_process.driver, memory_order_acquire);

    return driver != NULL ? driver : spw_track_load(false);
}

bool spw_track_off(void)
{
    enum { UNKNOWN, ON, OFF };
    int known = atomic_load_explicit(&spw_process.switched, memory_order_relaxed);

    if (SPW_UNLIKELY(known == UNKNOWN)) {
        known = spw_option_get(SPW_OPT_SPILLWAY, NULL, 0).on ? ON : OFF;
        atomic_store_explicit(&spw_process.switched, known, memory_order_relaxed);
    }
    return known == OFF;
}

/* Learns the visible devices. False when CUDA is not initialised. */
static bool find_devices(struct spw_driver *driver)
{
    int count = 0;

    if (driver->cuDeviceGetCount == NULL || driver->cuDeviceGet == NULL ||
        SPW_DRIVER_CALL(driver, -1, cuDeviceGetCount, &count) != CUDA_SUCCESS) {
        return false;
    }
    spw_process.device_count = count < SPW_DEVICES_MAX ? count : SPW_DEVICES_MAX;
    for (int i = 0; i < spw_process.device_count; i++) {
        struct spw_device *device = &spw_process.devices[i];

        device->ordinal = i;
        device->handle = i;
        atomic_store(&device->default_pool_asked, false);
        atomic_store(&device->current_pool, NULL);
        (void)SPW_DRIVER_CALL(driver, -1, cuDeviceGet, &device->handle, i);
    }
    return true;
}

static void leave(void)
{
    atomic_store(&spw_process.leaving, true);
}

static void watch_exit(void)
{
    if (!spw_process.at_exit) {
        spw_process.at_exit = atexit(leave) == 0;
    }
}

void spw_track_start(void)
{
    SPW_UNCANCELLED;
    struct spw_driver *driver = spw_track_driver();

    if (spw_track_off()) {
        atomic_store(&spw_process.state, SPW_PROCESS_OFF);
        return;
    }
    spw_track_ops.prepare();
    spw_lock(&spw_locks.process);
    if (atomic_load(&spw_process.state) != SPW_PROCESS_RUNNING && find_devices(driver)) {
        spw_track_ops.start(&spw_process);
        watch_exit();
        atomic_store_explicit(&spw_process.state, SPW_PROCESS_RUNNING, memory_order_release);
    }
    spw_unlock(&spw_locks.process);
}

bool spw_track_start_late(void)
{
    if (atomic_load(&spw_process.state) == SPW_PROCESS_IDLE) {
        spw_track_start();
    }
    return atomic_load(&spw_process.state) == SPW_PROCESS_RUNNING;
}
