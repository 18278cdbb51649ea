/* The mutexes of the preloaded object, each with its rank in lock.def.
 *
 * Taking and releasing a lock costs no more than the mutex itself. A thread may take a lock only if
 * every lock that it holds has a lower rank. A build without NDEBUG counts violations, and reports
 * them on stderr: locks that are taken out of order, or released by a thread that does not hold
 * them. The program goes on.
 *
 * During a fork, all locks except those of SPW_LOCK_ALONE are held. The child therefore finds every
 * structure in a consistent state. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum spw_lock_rank {
#define SPW_LOCK(name, guards)       SPW_LOCK_RANK_##name,
#define SPW_LOCK_EACH(name, guards)  SPW_LOCK_RANK_##name,
#define SPW_LOCK_ALONE(name, guards) SPW_LOCK_RANK_##name,
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
    SPW_LOCK_COUNT
};

struct spw_lock {
    pthread_mutex_t mutex;
    enum spw_lock_rank rank;
};

/* Counts the threads in calls of the dynamic loader, and the threads that fork (loader.h). */
struct spw_loader_gate {
    _Atomic unsigned inside; /* threads between enter and leave */
    _Atomic unsigned forks;
};

/* The locks that exist only once, ready for use: spw_lock(&spw_locks.ledger). */
struct spw_locks {
#define SPW_LOCK(name, guards) struct spw_lock name;
#define SPW_LOCK_EACH(name, guards)
#define SPW_LOCK_ALONE(name, guards) struct spw_lock name;
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
    struct spw_loader_gate loader;
    _Atomic uint64_t disorders; /* number of times that the order was violated; counted only in
                                   builds without NDEBUG */
};

extern struct spw_locks spw_locks;

/* Initialise and destroy a lock of SPW_LOCK_EACH. The caller holds a lock of a lower rank, or is
 * the only thread. */
void spw_lock_init(struct spw_lock *lock, enum spw_lock_rank rank);
void spw_lock_fini(struct spw_lock *lock);

/* Check the order of locks, in builds without NDEBUG. Any thread. */
void spw_lock_note_taken(const struct spw_lock *lock);
void spw_lock_note_released(const struct spw_lock *lock);

static inline void spw_lock(struct spw_lock *lock)
{
#ifndef NDEBUG
    spw_lock_note_taken(lock);
#endif
    pthread_mutex_lock(&lock->mutex);
}

static inline void spw_unlock(struct spw_lock *lock)
{
#ifndef NDEBUG
    spw_lock_note_released(lock);
#endif
    pthread_mutex_unlock(&lock->mutex);
}

/* Takes the lock if it is free; otherwise returns false. Ranks do not matter here, because the
 * caller does not wait. */
bool spw_lock_try(struct spw_lock *lock);

/* Waits for a condition. Caller holds the lock, which is released during the wait. The thread
 * cannot be cancelled here, because it would then keep the lock. */
static inline void spw_lock_wait(struct spw_lock *lock, pthread_cond_t *condition)
{
    int cancel;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_cond_wait(condition, &lock->mutex);
    (void)pthread_setcancelstate(cancel, NULL);
}

/* Called before fork. Takes all locks except those of SPW_LOCK_ALONE, in the order of their
 * ranks. */
void spw_lock_all(void);

/* Called after fork, in the parent and in the child. Releases the locks that spw_lock_all took. In
 * the child, also initialises the other locks again, because the threads that held them do not
 * exist there. */
void spw_lock_release_all(bool child);
