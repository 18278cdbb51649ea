/* Thread slots: records that each thread publishes for the others without taking a lock.
 *
 * A thread that enters a call writes to a slot of its own; a thread that must know which others are
 * in calls reads all slots. Writers need no fence: the reader makes their stores visible with one
 * system call (membarrier). If the kernel lacks membarrier, or all slots are taken, a thread takes
 * a slow path, with a fence or atomic counts.
 *
 * Two modules share the slots, and so one cache line and one system call: leases (device/lease.h)
 * and the submit barrier (migrate/move/barrier.h). Each module writes its own members only. Any
 * thread, no lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SPW_THREAD_SLOTS = 1024 };

struct spw_thread_slot {
    _Alignas(64) _Atomic uint64_t lease_epoch; /* epoch in which the call began; 0: no call */
    _Atomic uint64_t submissions;              /* completed submissions */
    _Atomic uint32_t leases;                   /* in the shared slot only: calls under way */
    _Atomic uint32_t submitting; /* threads in the barrier; more than 1 only in the shared slot */
    _Atomic bool taken;
};

struct spw_thread_slots {
    _Atomic bool fenced; /* no membarrier: threads order their stores themselves */
    bool has_key;        /* `key` exists */
    pthread_key_t key;   /* gives the slot back when a thread ends */
    pthread_once_t prepared;
    _Atomic uint64_t lease_epoch; /* current epoch, from 1; a closed pool begins a new one */
    struct spw_thread_slot slots[SPW_THREAD_SLOTS]; /* threads that got none share the last one */
};

struct spw_thread_self {
    struct spw_thread_slot *slot;  /* NULL: none yet */
    struct spw_thread_slot *quick; /* `slot` if it is not shared and needs no fence, or NULL */
    uint32_t leases;               /* nested leases that the thread holds */
};

extern struct spw_thread_slots spw_thread_slots;
extern _Thread_local struct spw_thread_self spw_thread_self
    __attribute__((tls_model("initial-exec")));

/* Returns the calling thread's slot; takes one at the first call. The slot is cleared and given
 * back when the thread ends. */
struct spw_thread_slot *spw_thread_slots_join(void);

static inline bool spw_thread_slots_is_shared(const struct spw_thread_slot *slot)
{
    return slot == &spw_thread_slots.slots[SPW_THREAD_SLOTS - 1];
}

/* Orders the memory of all threads. For each other thread one of two things is then true: the
 * caller sees that thread's earlier stores, or that thread's next loads see the caller's earlier
 * stores. False when the system call fails. */
bool spw_thread_slots_order(void);

/* In a child after fork: frees the slots of the other threads. The two modules clear their members
 * themselves. */
void spw_thread_slots_reset(void);
