/* The gate: every call that submits work to a device passes it, and a move of memory closes it for
 * a moment, so that nothing is submitted between the last look and the new mapping.
 *
 * One gate for the process: which devices a call concerns would cost more to find out than a move
 * of another device holds it up. The read side takes no lock: a thread says that it is inside in a
 * slot of its own and looks whether the gate is closed; the write side closes it, makes the other
 * threads' stores visible with one system call, and waits, not for long, until nobody is inside. A
 * thread that is inside passes again (a driver that calls back), and so does the one that closed
 * the gate.
 *
 * Counts submissions: what was submitted since a moment can be told from the sum. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_MIGRATE_BARRIER_SLOTS = 1024 };

struct spw_migrate_barrier_slot {
    _Alignas(64) _Atomic uint32_t inside; /* threads; one at most but in the last slot */
    _Atomic bool taken;
    _Atomic uint64_t submissions;
};

struct spw_migrate_barrier {
    _Atomic uint32_t closed; /* 1: wait; a futex */
    _Atomic bool armed;      /* the gate is in use; set once, before anything is submitted */
    _Atomic bool fenced;     /* the system call is missing: readers order their stores themselves */
    struct spw_migrate_barrier_slot
        slots[SPW_MIGRATE_BARRIER_SLOTS]; /* the last one is for threads that got none */
};

struct spw_migrate_barrier_thread {
    struct spw_migrate_barrier_slot *slot; /* NULL: none yet */
    uint32_t depth;                        /* calls under way, one inside the other */
};

extern struct spw_migrate_barrier spw_migrate_barrier;
extern _Thread_local struct spw_migrate_barrier_thread spw_migrate_barrier_thread
    __attribute__((tls_model("initial-exec")));

/* Puts the gate to use. Once, before the first submission that it has to know of; again in a child
 * after fork. */
void spw_migrate_barrier_arm(void);

/* In a child after fork: the other threads are gone. */
void spw_migrate_barrier_reset(void);

/* The slow parts of the read side: finds a slot for the thread; waits while the gate is closed. */
struct spw_migrate_barrier_slot *spw_migrate_barrier_join(void);
void spw_migrate_barrier_wait(struct spw_migrate_barrier_slot *slot);

/* Whether the calling thread is inside. */
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
    if (__builtin_expect(atomic_load_explicit(&spw_migrate_barrier.fenced, memory_order_relaxed),
                         0)) {
        atomic_thread_fence(memory_order_seq_cst);
    } else {
        atomic_signal_fence(memory_order_seq_cst);
    }
}

/* Before and after a call that submits work; they nest. */
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

/* Closes the gate, and waits at most `most_ns` until nobody is inside but the calling thread. False
 * when somebody stayed, or another thread has closed it: the gate is open then. */
bool spw_migrate_barrier_quiesce(uint64_t most_ns);
void spw_migrate_barrier_resume(void);

/* How many submissions have ended so far. One that was under way when the sum was taken, or began
 * later, has changed it by the time the gate is closed. */
uint64_t spw_migrate_barrier_submissions(void);
