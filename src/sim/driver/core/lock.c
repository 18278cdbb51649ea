#include "sim/driver/core/lock.h"

#include <pthread.h>

/* A thread that waits for the lock holds the gate, so a thread that has just released the lock
 * cannot overtake the waiting thread. Without the gate, a thread that calls the driver in a loop
 * starves the others. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static unsigned int waiting; /* threads in sim_wait_progress() */

void sim_lock(void)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&gate);
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

void sim_lock_reset_in_child(void)
{
    pthread_mutex_init(&gate, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&progress, NULL);
    waiting = 0;
}
