/* Measures what the submit barrier adds to a submission, in ns. Prints lines "name number". */
#include "migrate/move/barrier.h"

#include <stddef.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 5000000 };

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double time_passes(void)
{
    double begin = now_ns();

    for (int i = 0; i < ROUNDS; i++) {
        spw_migrate_barrier_acquire();
        __asm__ volatile("" ::: "memory"); /* the call */
        spw_migrate_barrier_release();
    }
    return (now_ns() - begin) / ROUNDS;
}

int main(void)
{
    printf("barrier, nothing may be spilled %.3f\n", time_passes());
    spw_migrate_barrier_arm();
    printf("barrier, no pressure %.3f\n", time_passes());
    atomic_store(&spw_thread_slots.fenced, true);
    spw_thread_self.quick = NULL;
    printf("barrier, kernel without membarrier %.3f\n", time_passes());
    return 0;
}
