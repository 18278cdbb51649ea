/* Thread slots: records that each thread publishes for other threads without taking a lock.
 *
 * A thread that enters a call writes to its own slot. A thread that must know which other threads
 * are in calls reads all slots. Writers need no fence, because the reader makes their stores
 * visible with one system call (membarrier). If the kernel lacks membarrier, or if all slots are
 * taken, a thread takes a slow path, with a fence or with atomic counts.
 *
 * Two modules share the slots: leases (device/lease.h) and the submit barrier
 * (migrate/move/barrier.h). They therefore need only one cache line and one system call. Each
 * module writes only its own members. Any thread, no lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SPW_THREAD_SLOTS = 1024 };

struct spw_thread_slot {
    _Alignas(64) _Atomic uint64_t lease_epoch; /* epoch in which the call began; 0: no call */
    _Atomic uint64_t submissions;              /* completed submissions */
    _Atomic uint32_t leases;                   /* only in the shared slot: number of calls in
                                                  progress */
    _Atomic uint32_t submitting; /* number of threads in the barrier; more than 1 only in the shared
                                    slot */
    _Atomic bool taken;
};

struct spw_thread_slots {
    _Atomic bool fenced; /* there is no membarrier: threads order their stores themselves */
    bool has_key;        /* `key` was created */
    pthread_key_t key;   /* gives the slot back when its thread ends */
    pthread_once_t prepared;
    _Atomic uint64_t lease_epoch; /* current epoch, from 1; closing a pool begins a new one */
    struct spw_thread_slot slots[SPW_THREAD_SLOTS]; /* threads that got no slot share the last
                                                       one */
};

struct spw_thread_self {
    struct spw_thread_slot *slot;  /* NULL: not assigned yet */
    struct spw_thread_slot *quick; /* equal to `slot` if that is not shared and needs no fence;
                                      otherwise NULL */
    uint32_t leases;               /* number of nested leases that the thread holds */
};

extern struct spw_thread_slots spw_thread_slots;
extern _Thread_local struct spw_thread_self spw_thread_self
    __attribute__((tls_model("initial-exec")));

/* Returns the calling thread's slot. Assigns one at the first call. When the thread ends, its slot
 * is cleared and given back. */
struct spw_thread_slot *spw_thread_slots_join(void);

static inline bool spw_thread_slots_is_shared(const struct spw_thread_slot *slot)
{
    return slot == &spw_thread_slots.slots[SPW_THREAD_SLOTS - 1];
}

/* Orders the memory accesses of all threads. For each other thread, one of two things is then true:
 * the caller sees the earlier stores of that thread, or the next loads of that thread see the
 * earlier stores of the caller. Returns false if the system call fails. */
bool spw_thread_slots_order(void);

/* In a child after fork: frees the slots of the other threads. Each of the two modules clears its
 * own members. */
void spw_thread_slots_reset(void);
