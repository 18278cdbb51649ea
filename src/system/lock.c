#include "system/lock.h"

#include "system/log.h"

#include <stddef.h>

enum {
    INSTANCES = 192, /* of one rank: a pool for each of 64 devices, and some that are closing */
    REPORTS = 10     /* lines about a broken order */
};

struct spw_locks spw_locks = {
#define SPW_LOCK(name, guards) .name = {PTHREAD_MUTEX_INITIALIZER, SPW_LOCK_RANK_##name},
#define SPW_LOCK_EACH(name, guards)
#define SPW_LOCK_ALONE(name, guards) SPW_LOCK(name, guards)
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
};

static const char *const names[SPW_LOCK_COUNT] = {
#define SPW_LOCK(name, guards)       #name,
#define SPW_LOCK_EACH(name, guards)  #name,
#define SPW_LOCK_ALONE(name, guards) #name,
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
};

/* The state for fork. */
static struct {
    /* Locks to be taken, by rank. An entry is set and cleared with compare and exchange. */
    _Atomic(struct spw_lock *) instances[SPW_LOCK_COUNT][INSTANCES];
    /* The locks that the forking thread holds, in the order in which it took them. Only that thread
     * uses this list, since it holds the first lock of all. */
    struct spw_lock *held[SPW_LOCK_COUNT * INSTANCES];
    size_t held_count;
} forking;

static bool replace(enum spw_lock_rank rank, struct spw_lock *from, struct spw_lock *to)
{
    for (size_t i = 0; i < INSTANCES; i++) {
        struct spw_lock *known = from;

        if (atomic_compare_exchange_strong(&forking.instances[rank][i], &known, to)) {
            return true;
        }
    }
    return false;
}

void spw_lock_init(struct spw_lock *lock, enum spw_lock_rank rank)
{
    pthread_mutex_init(&lock->mutex, NULL);
    lock->rank = rank;
    if (!replace(rank, NULL, lock)) {
        spw_log(SPW_LOG_DEBUG, "a lock of rank %s is not taken around fork: there are too many",
                names[rank]);
    }
}

void spw_lock_fini(struct spw_lock *lock)
{
    (void)replace(lock->rank, lock, NULL);
    pthread_mutex_destroy(&lock->mutex);
}

/* ---- order ---- */

static _Thread_local uint32_t held_ranks __attribute__((tls_model("initial-exec")));

void spw_lock_note_taken(const struct spw_lock *lock)
{
    uint32_t above = held_ranks >> lock->rank;

    if (above != 0 && atomic_fetch_add(&spw_locks.disorders, 1) < REPORTS) {
        enum spw_lock_rank first = (enum spw_lock_rank)(lock->rank + __builtin_ctz(above));

        spw_log_always("lock %s is taken while %s is held: this order may deadlock",
                       names[lock->rank], names[first]);
    }
    held_ranks |= UINT32_C(1) << lock->rank;
}

void spw_lock_note_released(const struct spw_lock *lock)
{
    if ((held_ranks >> lock->rank & 1) == 0 &&
        atomic_fetch_add(&spw_locks.disorders, 1) < REPORTS) {
        spw_log_always("lock %s is released by a thread that does not hold it", names[lock->rank]);
    }
    held_ranks &= ~(UINT32_C(1) << lock->rank);
}

bool spw_lock_try(struct spw_lock *lock)
{
    bool taken = pthread_mutex_trylock(&lock->mutex) == 0;

#ifndef NDEBUG
    if (taken) {
        held_ranks |= UINT32_C(1) << lock->rank;
    }
#endif
    return taken;
}

/* ---- fork ---- */

static void take(struct spw_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    forking.held[forking.held_count++] = lock;
}

static void take_each(enum spw_lock_rank rank)
{
    for (size_t i = 0; i < INSTANCES; i++) {
        struct spw_lock *lock = atomic_load(&forking.instances[rank][i]);

        if (lock != NULL) {
            take(lock);
        }
    }
}

void spw_lock_all(void)
{
#define SPW_LOCK(name, guards)      take(&spw_locks.name);
#define SPW_LOCK_EACH(name, guards) take_each(SPW_LOCK_RANK_##name);
#define SPW_LOCK_ALONE(name, guards)
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
}

void spw_lock_release_all(bool child)
{
    size_t count;

    if (child) {
#define SPW_LOCK(name, guards)
#define SPW_LOCK_EACH(name, guards)
#define SPW_LOCK_ALONE(name, guards) pthread_mutex_init(&spw_locks.name.mutex, NULL);
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
    }
    /* The first lock guards the list and is released last. */
    count = forking.held_count;
    forking.held_count = 0;
    while (count > 0) {
        pthread_mutex_unlock(&forking.held[--count]->mutex);
    }
}
