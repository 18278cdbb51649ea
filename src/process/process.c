#include "process/process.h"

#include "common/options.h"
#include "policy/open.h"
#include "process/native.h"
#include "system/lock.h"
#include "system/uncancelled.h"

#include <stdlib.h>

_Thread_local struct spw_outer_call spw_process_outer __attribute__((tls_model("initial-exec"))) = {
    .fn = SPW_FN_COUNT,
};

_Thread_local enum spw_process_native spw_process_native __attribute__((tls_model("initial-exec")));

struct spw_driver *spw_process_load(bool load)
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

struct spw_driver *spw_process_loaded(void)
{
    struct spw_driver *driver = atomic_load_explicit(&spw_process.driver, memory_order_acquire);

    return driver != NULL ? driver : spw_process_load(false);
}

bool spw_process_off(void)
{
    enum { UNKNOWN, ON, OFF };
    int known = atomic_load_explicit(&spw_process.switched, memory_order_relaxed);

    if (SPW_UNLIKELY(known == UNKNOWN)) {
        known = spw_option_get(SPW_OPT_SPILLWAY, NULL, 0).on ? ON : OFF;
        atomic_store_explicit(&spw_process.switched, known, memory_order_relaxed);
    }
    return known == OFF;
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

void spw_process_start(void)
{
    SPW_UNCANCELLED;

    (void)spw_process_driver();
    if (spw_process_off()) {
        atomic_store(&spw_process.state, SPW_PROCESS_OFF);
        return;
    }
    spw_process_ops.look();
    spw_policy_open_once();
    spw_lock(&spw_locks.process);
    if (!spw_process_is_running() && spw_process_ops.start(&spw_process)) {
        watch_exit();
        atomic_store_explicit(&spw_process.state, SPW_PROCESS_RUNNING, memory_order_release);
    }
    spw_unlock(&spw_locks.process);
}

bool spw_process_start_late(void)
{
    if (atomic_load(&spw_process.state) == SPW_PROCESS_IDLE) {
        spw_process_start();
    }
    return spw_process_is_running();
}
