/* Submit barrier: every call that submits work to a device passes it, and a migration closes it for
 * a moment, so that nothing is submitted between the last look at the content and the new mapping.
 *
 * There is one barrier for all devices, since finding out which devices a call concerns would cost
 * more than waiting for another device's migration. It is an asymmetric lock. Readers (submitters)
 * take no lock: a thread marks its own slot as inside and checks the flag `closed`. The writer (a
 * migration) sets `closed`, orders all readers with one membarrier system call, and waits (bounded)
 * until every slot is outside. A thread that is inside may enter again, for example from a driver
 * callback, and so may the writer.
 *
 * Each slot counts its submissions; the sum tells how much was submitted in a time span. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_MIGRATE_BARRIER_SLOTS = 1024 };

struct spw_migrate_barrier_slot {
    _Alignas(64) _Atomic uint32_t inside; /* number of threads inside; at most 1 except in the last
                                           * slot */
    _Atomic bool taken;
    _Atomic uint64_t submissions;
};

struct spw_migrate_barrier {
    _Atomic uint32_t closed;  /* 1: submitters wait; a futex word */
    _Atomic bool armed;       /* in use; set once, before the first submission */
    _Atomic bool needs_fence; /* no membarrier: readers use a memory fence */
    struct spw_migrate_barrier_slot
        slots[SPW_MIGRATE_BARRIER_SLOTS]; /* the last slot is shared by threads that got none */
};

struct spw_migrate_barrier_thread {
    struct spw_migrate_barrier_slot *slot; /* NULL: none yet */
    uint32_t depth;                        /* nested calls under way */
};

extern struct spw_migrate_barrier spw_migrate_barrier;
extern _Thread_local struct spw_migrate_barrier_thread spw_migrate_barrier_thread
    __attribute__((tls_model("initial-exec")));

/* Arms the barrier. Called once before the first submission that matters, and again in a child
 * after fork. Until then acquire and release do nothing. */
void spw_migrate_barrier_arm(void);

/* Resets it in a child after fork, where the other threads are gone. */
void spw_migrate_barrier_reset(void);

/* Slow paths of acquire: takes a slot for the calling thread; waits while the barrier is closed. */
struct spw_migrate_barrier_slot *spw_migrate_barrier_join(void);
void spw_migrate_barrier_wait(struct spw_migrate_barrier_slot *slot);

/* True while the calling thread is between acquire and release. */
static inline bool spw_migrate_barrier_inside(void)
{
    return spw_migrate_barrier_thread.depth > 0;
}

static inline bool spw_migrate_barrier_shared(const struct spw_migrate_barrier_slot *slot)
{
    return slot == &spw_migrate_barrier.slots[SPW_MIGRATE_BARRIER_SLOTS - 1];
}

static inline void spw_migrate_barrier_mark(struct spw_migrate_barrier_slot *slot)
{
    if (__builtin_expect(spw_migrate_barrier_shared(slot), 0)) {
        atomic_fetch_add(&slot->inside, 1);
    } else {
        atomic_store_explicit(&slot->inside, 1, memory_order_relaxed);
    }
    if (__builtin_expect(
            atomic_load_explicit(&spw_migrate_barrier.needs_fence, memory_order_relaxed), 0)) {
        atomic_thread_fence(memory_order_seq_cst);
    } else {
        atomic_signal_fence(memory_order_seq_cst);
    }
}

/* A submitting call is enclosed by acquire and release. They nest, and never fail. */
static inline void spw_migrate_barrier_acquire(void)
{
    struct spw_migrate_barrier_slot *slot = spw_migrate_barrier_thread.slot;

    if (!atomic_load_explicit(&spw_migrate_barrier.armed, memory_order_relaxed) ||
        spw_migrate_barrier_thread.depth++ > 0) {
        return;
    }
    if (__builtin_expect(slot == NULL, 0)) {
        slot = spw_migrate_barrier_join();
    }
    spw_migrate_barrier_mark(slot);
    if (__builtin_expect(
            atomic_load_explicit(&spw_migrate_barrier.closed, memory_order_acquire) != 0, 0)) {
        spw_migrate_barrier_wait(slot);
    }
}

static inline void spw_migrate_barrier_release(void)
{
    struct spw_migrate_barrier_slot *slot = spw_migrate_barrier_thread.slot;

    if (spw_migrate_barrier_thread.depth == 0 || --spw_migrate_barrier_thread.depth > 0) {
        return;
    }
    if (__builtin_expect(spw_migrate_barrier_shared(slot), 0)) {
        atomic_fetch_add(&slot->submissions, 1);
        atomic_fetch_sub(&slot->inside, 1);
        return;
    }
    atomic_store_explicit(&slot->submissions,
                          atomic_load_explicit(&slot->submissions, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->inside, 0, memory_order_release);
}

/* Closes the barrier and waits, at most `most_ns`, until no other thread is inside. False when one
 * stayed inside or another thread has closed it: then the barrier is open, as before. After success
 * the caller must call resume. */
bool spw_migrate_barrier_quiesce(uint64_t most_ns);
void spw_migrate_barrier_resume(void);

/* Number of completed submissions. A submission under way during the call, or begun after it, has
 * changed the sum by the time the barrier is quiesced. */
uint64_t spw_migrate_barrier_submissions(void);
