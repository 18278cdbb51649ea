#include "service/thread.h"

#include "driver/dl.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

bool spw_service_thread_start(void *(*run)(void *argument), void *argument)
{
    /* The function is in libc only from glibc 2.34 on. With older ones, CUDA has loaded the library
     * that has it. */
    void *found = spw_driver_dl_symbol_anywhere("pthread_create");
    create_function *create;
    sigset_t all, before;
    pthread_attr_t attributes;
    bool started = false;
    pthread_t thread;

    memcpy(&create, &found, sizeof(create));
    if (create == NULL || pthread_attr_init(&attributes) != 0) {
        return false;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    /* The new thread inherits this thread's mask. */
    if (sigprocmask(SIG_BLOCK, &all, &before) == 0) {
        started = create(&thread, &attributes, run, argument) == 0;
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
    return started;
}
