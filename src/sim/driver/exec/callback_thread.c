#include "sim/driver/exec/callback_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "sim/driver/core/lock.h"
#include "sim/driver/exec/callback.h"
#include "sim/driver/exec/schedule.h"

static void *callback_main(void *unused)
{
    for (;;) {
        sim_callback_make();
        sim_schedule_run();
        sim_notify_progress();
        sim_unlock();
    }
    return NULL;
}

CUresult sim_callback_start(void)
{
    static bool started;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    int error;

    if (started) {
        return CUDA_SUCCESS;
    }
    /* This thread must not get the program's signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, callback_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    pthread_detach(thread);
    started = true;
    return CUDA_SUCCESS;
}
