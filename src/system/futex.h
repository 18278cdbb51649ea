/* Waits until a word of memory changes. The word may be shared with other processes. */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while the word has the value `seen`, at most for `timeout` (NULL: without a limit). May
 * return early, so the caller must read the word again. */
static inline void spw_futex_wait(_Atomic uint32_t *word, uint32_t seen,
                                  const struct timespec *timeout)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout, NULL, 0);
}

/* Wakes all threads that wait for the word. Must be called after the word has changed. */
static inline void spw_futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
