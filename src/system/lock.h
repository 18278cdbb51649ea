/* The mutexes of the preloaded object, each with its rank in lock.def.
 *
 * Taking and releasing a lock costs no more than the mutex does. A thread may take a lock only
 * while every lock that it holds has a lower rank. A build without NDEBUG counts, and reports on
 * stderr, locks that are taken out of order or released by a thread that does not hold them; the
 * program goes on.
 *
 * Around fork all locks but those of SPW_LOCK_ALONE are held, so that the child finds every
 * structure whole. */
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

/* Counts of threads in calls of the dynamic loader, and of threads that fork (loader.h). */
struct spw_loader_gate {
    _Atomic unsigned inside; /* between enter and leave */
    _Atomic unsigned forks;
};

/* The single locks, ready for use: spw_lock(&spw_locks.ledger). */
struct spw_locks {
#define SPW_LOCK(name, guards) struct spw_lock name;
#define SPW_LOCK_EACH(name, guards)
#define SPW_LOCK_ALONE(name, guards) struct spw_lock name;
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
    struct spw_loader_gate loader;
    _Atomic uint64_t disorders; /* how often the order was broken; counted without NDEBUG */
};

extern struct spw_locks spw_locks;

/* Make and end a lock of SPW_LOCK_EACH. The caller holds a lock of a lower rank, or is the only
 * thread. */
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

/* Takes the lock if it is free; false if not. Ranks do not matter, since the caller does not
 * wait. */
bool spw_lock_try(struct spw_lock *lock);

/* Waits for a condition. Caller holds the lock, which is free during the wait. A thread is not
 * cancelled here, since it would keep the lock. */
static inline void spw_lock_wait(struct spw_lock *lock, pthread_cond_t *condition)
{
    int cancel;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_cond_wait(condition, &lock->mutex);
    (void)pthread_setcancelstate(cancel, NULL);
}

/* Before fork: takes all locks but those of SPW_LOCK_ALONE, in the order of their ranks. */
void spw_lock_all(void);

/* After fork, in the parent and in the child: releases these locks. In the child the locks that
 * were not taken are initialised again, since their holders are gone. */
void spw_lock_release_all(bool child);
