#include "intercept/fork.h"

#include "callsite/python.h"
#include "device/access.h"
#include "device/contexts.h"
#include "device/device.h"
#include "device/lease.h"
#include "graph/capture.h"
#include "graph/graph.h"
#include "ipc/server.h"
#include "migrate/move/barrier.h"
#include "program/ledger.h"
#include "program/mappings.h"
#include "program/stream.h"
#include "record/record.h"
#include "serve/imports.h"
#include "service/control.h"
#include "service/share.h"
#include "setup/sites.h"
#include "stats/file.h"
#include "submit/arguments.h"
#include "submit/indirect.h"
#include "submit/tensor_map.h"
#include "system/loader.h"
#include "system/lock.h"
#include "system/thread_slots.h"

#include <pthread.h>

/* True when the driver forks a helper process within a call of ours, while this thread holds locks.
 * That child does not use CUDA. */
static bool is_drivers_own(void)
{
    return spw_driver_inside();
}

static void prepare(void)
{
    if (!is_drivers_own()) {
        spw_lock_all();
        spw_loader_before_fork();
    }
}

static void parent(void)
{
    if (!is_drivers_own()) {
        spw_loader_after_fork(/* child */ false);
        spw_lock_release_all(/* child */ false);
    }
}

/* Detaches from the parent's statistics. False when there is no memory for statistics of the child;
 * then the child must change no figure. */
static bool forget_figures(void)
{
    spw_service_control_forget();
    spw_service_share_forget();
    spw_record_forget();
    return spw_stats_forget() && spw_setup_sites_forget();
}

static void child(void)
{
    if (is_drivers_own()) {
        atomic_store(&spw_process.state, SPW_PROCESS_OFF);
        return;
    }
    spw_loader_after_fork(/* child */ true);
    spw_lock_release_all(/* child */ true);
    if (!spw_process_is_running()) {
        return;
    }
    atomic_store(&spw_process.state, SPW_PROCESS_CHILD);
    spw_thread_slots_reset();
    spw_callsite_python_reset();
    spw_migrate_barrier_reset();
    spw_device_lease_reset();
    /* This comes before the pools are closed, which changes counters: the parent's must not
     * change. */
    if (!forget_figures()) {
        atomic_store(&spw_process.state, SPW_PROCESS_OFF);
        return;
    }
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *device = spw_device_at(i);

        spw_device_abandon(device);
        atomic_store(&device->failed, false);
    }
    spw_device_access_reset();
    spw_device_contexts_reset();
    spw_program_stream_reset();
    spw_graph_capture_reset();
    spw_graph_reset();
    spw_program_ledger_reset();
    spw_submit_indirect_reset();
    spw_submit_tensor_map_reset();
    spw_submit_arguments_forget_layouts();
    spw_program_mappings_reset();
    spw_ipc_server_forget();
    spw_serve_imports_reset();
    (void)forget_figures(); /* clears the figures that closing changed */
}

void spw_intercept_fork_watch(void)
{
    if (!spw_process.at_fork) {
        spw_process.at_fork = pthread_atfork(prepare, parent, child) == 0;
    }
}
