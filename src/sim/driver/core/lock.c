#include "sim/driver/core/lock.h"

#include <pthread.h>
#include <stdatomic.h>

/* A thread that waits for the lock holds the gate, and while any thread waits, every thread takes
 * the gate first. A thread that has just released the lock therefore cannot overtake the waiting
 * threads. Without the gate, a thread that calls the driver in a loop starves the others. */
static _Atomic unsigned int queued; /* threads that wait for the gate, or hold it */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static unsigned int waiting; /* threads in sim_wait_progress() */

void sim_lock(void)
{
    if (atomic_load_explicit(&queued, memory_order_relaxed) == 0 &&
        pthread_mutex_trylock(&lock) == 0) {
        return;
    }
    atomic_fetch_add(&queued, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&gate);
    atomic_fetch_sub(&queued, 1);
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
    atomic_store(&queued, 0);
    pthread_mutex_init(&gate, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&progress, NULL);
    waiting = 0;
}
