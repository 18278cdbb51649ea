#include "sim/driver/entry.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/driver/calls.h"
#include "sim/driver/context.h"
#include "sim/driver/device.h"
#include "sim/driver/fit.h"
#include "sim/driver/neighbours.h"
#include "sim/driver/poll.h"
#include "sim/driver/tables.h"
#include "sim/driver/timing.h"
#include "sim/driver/work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static unsigned int waiting; /* threads in sim_wait_progress() */

static bool initialized; /* cuInit succeeded */
static bool forked;      /* and this process is a fork of the one that called it */

void sim_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void sim_wait_progress(void)
{
    waiting++;
    pthread_cond_wait(&progress, &lock);
    waiting--;
}

void sim_notify_progress(void)
{
    if (waiting > 0) {
        pthread_cond_broadcast(&progress);
    }
}

/* A thread's questions about its own context take no step of the scheduler: runtimes ask dozens of
 * times between two launches, and what is queued would always be done by the second. */
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
        sim_work_step(sim_timing_of_call(fn));
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

    sim_neighbours_look(fn);
    sim_lock();
    injected = sim_calls_begin(fn);
    sim_fit_begin();
    sim_poll_note(fn);
    result = check_need(fn, need);
    return result != CUDA_SUCCESS ? result : injected;
}

CUresult sim_leave(enum sim_fn fn, CUresult result)
{
    sim_calls_end(fn, result);
    sim_fit_end(fn, result);
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
    sim_fit_begin();
    if (!named[fn]) {
        named[fn] = true;
        snprintf(line, sizeof(line), "%s is not modelled", sim_fn_names[fn]);
        sim_calls_log(line);
    }
    return sim_leave(fn, injected != CUDA_SUCCESS ? injected : CUDA_ERROR_NOT_SUPPORTED);
}

void sim_warn_once(bool *once, const char *format, ...)
{
    char text[400];
    va_list args;
    int length;

    if (once != NULL && *once) {
        return;
    }
    if (once != NULL) {
        *once = true;
    }
    length = snprintf(text, sizeof(text), "spillway sim: ");
    va_start(args, format);
    vsnprintf(text + length, sizeof(text) - (size_t)length - 1, format, args);
    va_end(args);
    sim_calls_log(text);
    fprintf(stderr, "%s\n", text);
}

/* cuda.h does not say what a fork of an initialised process may do; on a real driver every call
 * there returns CUDA_ERROR_NOT_INITIALIZED, and so does cuInit. */
static void forget_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&progress, NULL);
    waiting = 0;
    forked = initialized;
    sim_fit_forget();
}

SIM_API(cuInit, SIM_NOTHING, (unsigned int Flags), (Flags))
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
    sim_fit_start();
    initialized = true;
    return CUDA_SUCCESS;
}
