/* Submit barrier: every call that submits work to a device passes it. A migration closes it for a
 * moment, so that no work is submitted between the last check of the content and the new mapping.
 *
 * There is one barrier for all devices, because finding out which devices a call concerns would
 * cost more than waiting for another device's migration. It is an asymmetric lock. Readers
 * (submitters) take no lock: a thread marks its slot (system/thread_slots.h) as inside and checks
 * the flag `closed`. The writer (a migration) sets `closed`, orders all readers with one membarrier
 * system call, and waits (bounded) until every slot is outside. A thread that is inside may enter
 * again, for example from a driver callback, and so may the writer.
 *
 * A pause of the program (service/pause.h) holds the barrier closed until the pause ends. Requests
 * for memory wait during a pause as well. Before the pause moves memory, it lets single calls pass,
 * because work of the device may wait for later submissions of this program or another program. It
 * also lends the closed barrier to migrations, because a call that passes may need room.
 *
 *              quiesce                          hold
 *     closed <------------          open         ------------> held, LENT
 *            ------------>                       <------------
 *              resume                        release_hold
 *
 *     held:    LENT  -- step -->  PASS  -- a call passes, or none came -->  LENT
 *              LENT, PASS  -- quiesce -->  BORROWED  -- resume -->  LENT
 *              LENT  -- claim -->  OWN  -- release_hold -->  open
 *              BORROWED  -- release_hold -->  LEFT  -- resume -->  open
 *
 * Each slot counts its submissions; the sum shows the number of submissions in a time span. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/likely.h"
#include "system/thread_slots.h"

/* How other threads may use the barrier while a pause holds it. */
enum spw_migrate_barrier_loan {
    SPW_BARRIER_OWN,      /* not at all: no pause holds it, or the pause moves memory */
    SPW_BARRIER_LENT,     /* one migration may borrow it */
    SPW_BARRIER_PASS,     /* one migration may borrow it, or one waiting call may pass */
    SPW_BARRIER_BORROWED, /* a migration has borrowed it */
    SPW_BARRIER_LEFT,     /* a migration has it and will open it, because the pause has ended */
};

struct spw_migrate_barrier {
    _Atomic uint32_t closed; /* 1: submitters wait; more: until a pause ends; a futex word */
    _Atomic bool armed;      /* in use; set once, before the first submission */
    _Atomic uint32_t held;   /* not 0: a pause holds it closed, or is about to; a futex word */
    _Atomic uint32_t loan;   /* enum spw_migrate_barrier_loan */
    /* Called by each thread that begins to wait for the end of a pause; may be NULL. */
    void (*_Atomic on_arrival)(void);
};

extern struct spw_migrate_barrier spw_migrate_barrier;

/* The number of nested calls under way in the calling thread. */
extern _Thread_local uint32_t spw_migrate_barrier_depth __attribute__((tls_model("initial-exec")));

/* Arms the barrier. Called once before the first submission that counts, and again in a child after
 * fork. Until the barrier is armed, acquire and release do nothing. */
void spw_migrate_barrier_arm(void);

/* Resets the barrier in a child after fork, where the other threads are gone. */
void spw_migrate_barrier_reset(void);

/* Slow paths of acquire and release. acquire_slowly and release_slowly: the first call of a thread,
 * a shared slot, or a system without membarrier. wait: the barrier is closed. */
void spw_migrate_barrier_acquire_slowly(void);
void spw_migrate_barrier_release_slowly(void);
void spw_migrate_barrier_wait(struct spw_thread_slot *slot);

/* True while the calling thread is between acquire and release. */
static inline bool spw_migrate_barrier_inside(void)
{
    return spw_migrate_barrier_depth > 0;
}

/* Acquire and release enclose a submitting call. They nest, and never fail. */
static inline void spw_migrate_barrier_acquire(void)
{
    struct spw_thread_slot *slot = spw_thread_self.quick;

    if (!atomic_load_explicit(&spw_migrate_barrier.armed, memory_order_relaxed) ||
        spw_migrate_barrier_depth++ > 0) {
        return;
    }
    if (SPW_UNLIKELY(slot == NULL)) {
        spw_migrate_barrier_acquire_slowly();
        return;
    }
    atomic_store_explicit(&slot->submitting, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (SPW_UNLIKELY(atomic_load_explicit(&spw_migrate_barrier.closed, memory_order_acquire) !=
                     0)) {
        spw_migrate_barrier_wait(slot);
    }
}

static inline void spw_migrate_barrier_release(void)
{
    struct spw_thread_slot *slot = spw_thread_self.quick;

    if (spw_migrate_barrier_depth == 0 || --spw_migrate_barrier_depth > 0) {
        return;
    }
    if (SPW_UNLIKELY(slot == NULL)) {
        spw_migrate_barrier_release_slowly();
        return;
    }
    atomic_store_explicit(&slot->submissions,
                          atomic_load_explicit(&slot->submissions, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->submitting, 0, memory_order_release);
}

/* Closes the barrier and waits, at most `most_ns`, until no other thread is inside. False when a
 * thread stayed inside or another thread has closed the barrier; the barrier is then as before.
 * After success the caller must call resume. A thread that holds the barrier for a pause may also
 * close it. */
bool spw_migrate_barrier_quiesce(uint64_t most_ns);
void spw_migrate_barrier_resume(void);

/* Closes the barrier for a pause. Other threads may still be inside: see await_quiet. False when
 * another thread has kept the barrier closed for `most_ns`; the barrier is then as before. Each
 * thread that begins to wait calls `arrived`, without a lock. The calling thread ends the pause
 * with release_hold. */
bool spw_migrate_barrier_hold(uint64_t most_ns, void (*arrived)(void));
void spw_migrate_barrier_release_hold(void);

/* Called by the thread that holds the barrier. Waits, at most `most_ns`, until no other thread is
 * inside; false if one stays inside. */
bool spw_migrate_barrier_await_quiet(uint64_t most_ns);

/* Like await_quiet. In addition, no call passes and no migration begins until release_hold. */
bool spw_migrate_barrier_claim(uint64_t most_ns);

/* Called between barrier_hold and barrier_claim, by the same thread. Lets one call (a
 * submission or a request for memory) pass, if one waits or arrives within `most_ns`. The call may
 * still be under way afterwards: await_quiet waits for a submission, but not for a request for
 * memory. */
void spw_migrate_barrier_step(uint64_t most_ns);

/* True while a pause holds the barrier, or is about to. */
static inline bool spw_migrate_barrier_is_held(void)
{
    return atomic_load(&spw_migrate_barrier.held) != 0;
}

/* Waits until no pause holds the barrier or, if this call `may_pass`, until a step lets it pass.
 * Returns at once if the calling thread is inside. */
void spw_migrate_barrier_await_hold(bool may_pass);

/* Called before a request for memory takes a lock. */
static inline void spw_migrate_barrier_pass(void)
{
    if (SPW_UNLIKELY(atomic_load_explicit(&spw_migrate_barrier.held, memory_order_relaxed) != 0)) {
        spw_migrate_barrier_await_hold(/* may_pass */ true);
    }
}

/* True when a pause holds the barrier and the calling thread is outside. A request that found no
 * memory should then be tried again when it may pass. */
static inline bool spw_migrate_barrier_holds_up(void)
{
    return spw_migrate_barrier_is_held() && !spw_migrate_barrier_inside();
}

/* If a pause holds up the calling thread, waits until the request may pass, and returns true. False
 * when there is no such pause; the request must then be refused. */
static inline bool spw_migrate_barrier_pass_again(void)
{
    if (!spw_migrate_barrier_holds_up()) {
        return false;
    }
    spw_migrate_barrier_pass();
    return true;
}

/* Called before a call that must not be under way while a pause moves memory. */
static inline void spw_migrate_barrier_await_end(void)
{
    if (spw_migrate_barrier_is_held()) {
        spw_migrate_barrier_await_hold(/* may_pass */ false);
    }
}

/* Number of completed submissions. If a submission is under way during the call, or begins later,
 * the number has changed by the time that the barrier is next quiesced. */
uint64_t spw_migrate_barrier_submissions(void);
