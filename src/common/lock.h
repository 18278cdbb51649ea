/* The mutexes of the preloaded object, each with its rank in lock.def.
 *
 * Taking and releasing cost what the mutex costs. In a build without NDEBUG, a lock that is taken
 * out of order is counted and reported on stderr: a thread may take a lock only while every lock
 * that it holds has a lower rank. So is one that is released by a thread that does not hold it. The
 * program goes on all the same.
 *
 * Around fork all of them are held, so that the child finds every structure whole. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum spw_lock_rank {
#define SPW_LOCK(name, guards)       SPW_LOCK_RANK_##name,
#define SPW_LOCK_EACH(name, guards)  SPW_LOCK_RANK_##name,
#define SPW_LOCK_ALONE(name, guards) SPW_LOCK_RANK_##name,
#include "common/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
    SPW_LOCK_COUNT
};

struct spw_lock {
    pthread_mutex_t mutex;
    enum spw_lock_rank rank;
};

/* The locks of which there is one, ready for use: spw_lock(&spw_locks.ledger). */
struct spw_locks {
#define SPW_LOCK(name, guards) struct spw_lock name;
#define SPW_LOCK_EACH(name, guards)
#define SPW_LOCK_ALONE(name, guards) struct spw_lock name;
#include "common/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
};

extern struct spw_locks spw_locks;

/* Makes and ends a lock of which there are several. Caller holds a lock of a lower rank, or is the
 * only thread. */
void spw_lock_init(struct spw_lock *lock, enum spw_lock_rank rank);
void spw_lock_fini(struct spw_lock *lock);

/* The order, as far as it is checked. Any thread. */
extern _Atomic uint64_t spw_lock_disorders; /* how often it was broken */
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

/* Takes the lock if nobody holds it: in any order, since nobody waits. False when somebody does. */
bool spw_lock_try(struct spw_lock *lock);

/* Waits for a condition. Caller holds the lock, which is free meanwhile. A thread is not cancelled
 * here, since it would keep the lock. */
static inline void spw_lock_wait(struct spw_lock *lock, pthread_cond_t *condition)
{
    int cancel;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_cond_wait(condition, &lock->mutex);
    (void)pthread_setcancelstate(cancel, NULL);
}

/* Before fork: takes all locks in the order of their ranks, but not those that belong inside the
 * loader's lock. */
void spw_lock_all(void);

/* After fork: releases them, in the parent and in the child. In the child the locks that were not
 * taken are made anew, since their holder is gone. */
void spw_lock_release_all(bool child);
