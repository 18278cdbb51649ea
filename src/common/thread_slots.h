/* Thread slots: records that each thread publishes for the others without taking a lock.
 *
 * A thread that enters a call writes to a slot of its own; a thread that must know which others are
 * inside reads all slots. Writers need no fence: the reader makes their stores visible with one
 * system call (membarrier). If the kernel lacks it, or all slots are taken, a thread takes the slow
 * path of the users below, with a fence or atomic counts.
 *
 * Two users share a slot, and with it one cache line and one system call: leases (device/lease.h)
 * and the submit barrier (migrate/move/barrier.h). Each writes its own members only. Any thread, no
 * lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SPW_THREAD_SLOTS = 1024 };

struct spw_thread_slot {
    _Alignas(64) _Atomic uint64_t
        lease_epoch;              /* of the call's beginning; 0: no call is under way */
    _Atomic uint64_t submissions; /* completed */
    _Atomic uint32_t leases;      /* of the shared slot: calls under way */
    _Atomic uint32_t submitting;  /* threads inside the barrier; at most 1 but in the shared slot */
    _Atomic bool taken;
};

struct spw_thread_slots {
    _Atomic bool fenced; /* no membarrier: threads order their stores themselves */
    bool has_key;        /* `key` exists */
    pthread_key_t key;   /* gives the slot back when a thread ends */
    pthread_once_t prepared;
    _Atomic uint64_t lease_epoch; /* the present one, from 1; changes when a pool is closed */
    struct spw_thread_slot slots[SPW_THREAD_SLOTS]; /* the last one is for threads that got none */
};

struct spw_thread_self {
    struct spw_thread_slot *slot;  /* NULL: none yet */
    struct spw_thread_slot *quick; /* `slot`, if it is not shared and needs no fence, or NULL */
    uint32_t leases;               /* that the thread holds, one within the other */
};

extern struct spw_thread_slots spw_thread_slots;
extern _Thread_local struct spw_thread_self spw_thread_self
    __attribute__((tls_model("initial-exec")));

/* Returns the calling thread's slot; takes one at the first call. It is given back, cleared, when
 * the thread ends. */
struct spw_thread_slot *spw_thread_slots_join(void);

static inline bool spw_thread_slots_is_shared(const struct spw_thread_slot *slot)
{
    return slot == &spw_thread_slots.slots[SPW_THREAD_SLOTS - 1];
}

/* Orders the memory of all threads: for each other thread, the caller sees its earlier stores, or
 * that thread's next loads see the caller's earlier stores. False when the system call fails. */
bool spw_thread_slots_order(void);

/* In a child after fork: the slots of the other threads are free. Their users clear their members
 * themselves. */
void spw_thread_slots_reset(void);
