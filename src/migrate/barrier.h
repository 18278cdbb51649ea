/* Submit barrier: every call that submits work to a device passes it, and a migration closes it for
 * a moment, so that nothing is submitted between the last look at the content and the new mapping.
 *
 * There is one barrier for all devices, since finding out which devices a call concerns would cost
 * more than waiting for another device's migration. It is an asymmetric lock. Readers (submitters)
 * take no lock: a thread marks its slot (common/thread_slots.h) as inside and checks the flag
 * `closed`. The writer (a migration) sets `closed`, orders all readers with one membarrier system
 * call, and waits (bounded) until every slot is outside. A thread that is inside may enter again,
 * for example from a driver callback, and so may the writer.
 *
 * A pause of the program (serve/pause.h) holds it closed for as long as it lasts, and then requests
 * for memory wait as well. Before it moves anything it lets single calls pass, since work of the
 * device may wait for what this program, or another one, has not submitted yet; and it lends the
 * closed barrier to migrations, since such a call may need room.
 *
 * Each slot counts its submissions; the sum tells how much was submitted in a time span. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/likely.h"
#include "common/thread_slots.h"

/* What a pause lets others do that holds the barrier. */
enum spw_migrate_barrier_loan {
    SPW_BARRIER_OWN,      /* nothing: no pause holds it, or one that moves memory */
    SPW_BARRIER_LENT,     /* a migration may borrow it, which then has it alone */
    SPW_BARRIER_PASS,     /* so it may; or one call that waits passes */
    SPW_BARRIER_BORROWED, /* a migration has it */
    SPW_BARRIER_LEFT,     /* a migration has it, and opens it: the pause has ended */
};

struct spw_migrate_barrier {
    _Atomic uint32_t closed; /* 1: submitters wait; more: for the end of a pause; a futex word */
    _Atomic bool armed;      /* in use; set once, before the first submission */
    _Atomic uint32_t held;   /* not 0: closed by a pause; a futex word */
    _Atomic uint32_t loan;   /* enum spw_migrate_barrier_loan */
};

extern struct spw_migrate_barrier spw_migrate_barrier;

/* Calls under way in the calling thread, one inside the other. */
extern _Thread_local uint32_t spw_migrate_barrier_depth __attribute__((tls_model("initial-exec")));

/* Arms the barrier. Called once before the first submission that matters, and again in a child
 * after fork. Until then acquire and release do nothing. */
void spw_migrate_barrier_arm(void);

/* Resets it in a child after fork, where the other threads are gone. */
void spw_migrate_barrier_reset(void);

/* Slow paths of acquire and release: the first call of a thread, a shared slot, a system without
 * membarrier; a closed barrier. */
void spw_migrate_barrier_acquire_slowly(void);
void spw_migrate_barrier_release_slowly(void);
void spw_migrate_barrier_wait(struct spw_thread_slot *slot);

/* True while the calling thread is between acquire and release. */
static inline bool spw_migrate_barrier_inside(void)
{
    return spw_migrate_barrier_depth > 0;
}

/* A submitting call is enclosed by acquire and release. They nest, and never fail. */
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

/* Closes the barrier and waits, at most `most_ns`, until no other thread is inside. False when one
 * stayed inside or another thread has closed it: then the barrier is as before. After success the
 * caller must call resume. A thread that holds it may close it besides. */
bool spw_migrate_barrier_quiesce(uint64_t most_ns);
void spw_migrate_barrier_resume(void);

/* Closes the barrier for a pause. Others may be inside still: see await_quiet. False when another
 * thread has kept it closed for `most_ns`; then it is as before. `arrived` is called by each thread
 * that begins to wait, with no lock. Ended by release_hold, on the same thread. */
bool spw_migrate_barrier_hold(uint64_t most_ns, void (*arrived)(void));
void spw_migrate_barrier_release_hold(void);

/* For the thread that holds it. Waits, at most `most_ns`, until no other thread is inside; false
 * when one is still. */
bool spw_migrate_barrier_await_quiet(uint64_t most_ns);

/* The same, and no call passes and no migration begins any more until release_hold. */
bool spw_migrate_barrier_claim(uint64_t most_ns);

/* For the thread that holds it, before it claims it. Lets one call that waits, or comes within
 * `most_ns`, pass: a submission or a request for memory. It may be under way afterwards:
 * await_quiet waits for a submission, and nothing does for a request for memory. */
void spw_migrate_barrier_step(uint64_t most_ns);

/* True while a pause holds it, or is about to. */
static inline bool spw_migrate_barrier_is_held(void)
{
    return atomic_load(&spw_migrate_barrier.held) != 0;
}

/* Waits until no pause holds the barrier, or a step of it lets this call pass if it `may_pass`.
 * Returns at once if the calling thread is inside. */
void spw_migrate_barrier_await_hold(bool may_pass);

/* To be called before a request for memory takes a lock. */
static inline void spw_migrate_barrier_pass(void)
{
    if (SPW_UNLIKELY(atomic_load_explicit(&spw_migrate_barrier.held, memory_order_relaxed) != 0)) {
        spw_migrate_barrier_await_hold(/* may_pass */ true);
    }
}

/* True when a pause holds the barrier and the calling thread is outside: nothing moves then, so a
 * request that found no room for memory should be tried again when it may pass. */
static inline bool spw_migrate_barrier_holds_up(void)
{
    return spw_migrate_barrier_is_held() && !spw_migrate_barrier_inside();
}

/* Waits for that, if it is so. False when it is not, and the request is to be refused. */
static inline bool spw_migrate_barrier_pass_again(void)
{
    if (!spw_migrate_barrier_holds_up()) {
        return false;
    }
    spw_migrate_barrier_pass();
    return true;
}

/* To be called before a call that must not be under way when a pause moves memory. */
static inline void spw_migrate_barrier_await_end(void)
{
    if (spw_migrate_barrier_is_held()) {
        spw_migrate_barrier_await_hold(/* may_pass */ false);
    }
}

/* Number of completed submissions. A submission under way during the call, or begun after it, has
 * changed the sum by the time the barrier is quiesced. */
uint64_t spw_migrate_barrier_submissions(void);
