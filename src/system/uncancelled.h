/* Scopes that protect a thread from cancellation. No locking.
 *
 * Most functions that work on files are cancellation points. A thread that ended in one of them
 * would keep the locks that it holds, and all other threads would wait forever. With these scopes,
 * a driver function that is not a cancellation point does not become one. The thread is cancelled
 * at the program's next cancellation point. */
#pragma once

#include <pthread.h>
#include <stddef.h>

static inline int spw_uncancelled_begin(void)
{
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void spw_uncancelled_end(const int *before)
{
    (void)pthread_setcancelstate(*before, NULL);
}

/* A declaration whose effect lasts until the end of the scope. It costs some nanoseconds, so it is
 * for rare paths. */
#define SPW_UNCANCELLED                                                                            \
    __attribute__((cleanup(spw_uncancelled_end), unused)) const int spw_uncancelled =              \
        spw_uncancelled_begin()
