#include "sim/driver/api/entry.h"

#include <pthread.h>
#include <stdio.h>

#include "sim/driver/api/loaded_libs.h"
#include "sim/driver/core/budget.h"
#include "sim/driver/core/calls.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/device.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/neighbours.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/tables.h"
#include "sim/driver/exec/callback.h"
#include "sim/driver/exec/poll_loop.h"
#include "sim/driver/exec/schedule.h"
#include "sim/driver/exec/timing.h"

static bool initialized; /* cuInit succeeded */
static bool forked;      /* this process is a fork of an initialised process */

/* Queries of a thread about its own context take no step of the scheduler. A runtime makes dozens
 * of such queries between two launches. If each query took a step, queued work would always be
 * complete before the second launch. */
static bool takes_step(enum sim_fn fn)
{
    switch ((int)fn) {
    case SIM_FN_cuCtxGetDevice:
    case SIM_FN_cuDevicePrimaryCtxGetState:
    case SIM_FN_cuKernelGetFunction:
        return false;
    default:
        return true;
    }
}

static CUresult check_need(enum sim_fn fn, enum sim_need need)
{
    CUcontext ctx = sim_ctx_current();

    if (need == SIM_NOTHING) {
        return CUDA_SUCCESS;
    }
    if (!initialized || forked) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (sim_callback_is_thread()) {
        return CUDA_ERROR_NOT_PERMITTED; /* cuda.h, cuLaunchHostFunc */
    }
    if (takes_step(fn)) {
        sim_schedule_step(sim_timing_of_call(fn));
    }
    if (need == SIM_INITIALIZED) {
        return CUDA_SUCCESS;
    }
    if (need == SIM_HEALTHY && (ctx == NULL || !ctx->live || ctx->ending)) {
        return CUDA_SUCCESS;
    }
    return sim_ctx_require(&ctx);
}

CUresult sim_enter(enum sim_fn fn, enum sim_need need)
{
    CUresult injected, result;

    sim_loaded_libs_check(fn);
    sim_lock();
    injected = sim_calls_begin(fn);
    sim_run_record_begin();
    sim_poll_loop_note(fn);
    result = check_need(fn, need);
    return result != CUDA_SUCCESS ? result : injected;
}

/* Looks at the host's memory after some calls. */
static void look_at_host(void)
{
    enum { CALLS = 64 };
    static unsigned int count;

    if (++count % CALLS == 0) {
        sim_budget_look_sometimes();
    }
}

CUresult sim_leave(enum sim_fn fn, CUresult result)
{
    look_at_host();
    sim_calls_end(fn, result);
    sim_run_record_end(fn, result);
    sim_notify_progress();
    sim_unlock();
    return result;
}

CUresult sim_unmodelled(enum sim_fn fn)
{
    static bool named[SIM_FN_COUNT];
    CUresult injected;
    char line[128];

    sim_lock();
    injected = sim_calls_begin(fn);
    sim_run_record_begin();
    if (!named[fn]) {
        named[fn] = true;
        snprintf(line, sizeof(line), "%s is not modelled", sim_fn_names[fn]);
        sim_calls_log(line);
    }
    return sim_leave(fn, injected != CUDA_SUCCESS ? injected : CUDA_ERROR_NOT_SUPPORTED);
}

/* cuda.h does not cover the fork of an initialised process. With a real driver, every call in the
 * child, even cuInit, returns CUDA_ERROR_NOT_INITIALIZED. */
static void forget_in_child(void)
{
    sim_lock_reset_in_child();
    forked = initialized;
    sim_run_record_forget();
    sim_neighbours_forget();
}

SIM_API(cuInit, SIM_NOTHING, (unsigned int Flags))
{
    static bool watching;

    if (Flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (forked) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (!watching) {
        watching = true;
        pthread_atfork(NULL, NULL, forget_in_child);
    }
    if (sim_device_count() == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    sim_run_record_start();
    sim_neighbours_start();
    initialized = true;
    return CUDA_SUCCESS;
}
