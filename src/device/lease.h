/* Leases: while a call of the program holds a lease, every pool that the call may use stays valid,
 * with all of its parts.
 *
 * A thread that destroys the last context of a device destroys the device's pool. At that moment
 * other threads may be looking through the pools of all devices. Every call that may use a pool
 * therefore holds a lease from its beginning to its end. A pool is closed in two steps: it is made
 * unreachable for new calls, and it is destroyed when every call that may have seen it has ended.
 *
 * A lease takes no lock. At the beginning of a call, the thread stores the current epoch in its
 * slot (system/thread_slots.h). The thread that closes a pool begins a new epoch and makes the
 * slots of all threads visible to itself. Any thread, no lock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/likely.h"
#include "system/thread_slots.h"

/* The slow paths of the two functions below. They serve the first lease of a thread, threads with a
 * shared slot, and systems without membarrier. */
void spw_device_lease_enter_slowly(void);
void spw_device_lease_leave_slowly(void);

/* Begins a lease. Must be called before a device's pool, or a part of it, is used. Leases nest. */
static inline void spw_device_lease_enter(void)
{
    struct spw_thread_slot *slot = spw_thread_self.quick;

    if (spw_thread_self.leases++ > 0) {
        return;
    }
    if (SPW_UNLIKELY(slot == NULL)) {
        spw_device_lease_enter_slowly();
        return;
    }
    atomic_store_explicit(&slot->lease_epoch,
                          atomic_load_explicit(&spw_thread_slots.lease_epoch, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* Ends a lease. The caller must no longer use pointers that it read under the lease. */
static inline void spw_device_lease_leave(void)
{
    struct spw_thread_slot *slot = spw_thread_self.quick;

    if (--spw_thread_self.leases > 0) {
        return;
    }
    if (SPW_UNLIKELY(slot == NULL)) {
        spw_device_lease_leave_slowly();
        return;
    }
    atomic_store_explicit(&slot->lease_epoch, 0, memory_order_release);
}

/* Begins a new epoch and returns it. Called after an object was made unreachable. Returns 0 if the
 * system cannot make the change visible to other threads. The object must then never be
 * destroyed. */
uint64_t spw_device_lease_renew(void);

/* Returns true if every lease that began before `epoch` has ended. `except_own` ignores the lease
 * of the calling thread. */
bool spw_device_lease_ended(uint64_t epoch, bool except_own);

/* Waits at most `most_ns` until spw_device_lease_ended() is true. Returns false if a lease has not
 * ended by then. */
bool spw_device_lease_await(uint64_t epoch, bool except_own, uint64_t most_ns);

/* In a child after fork: forgets the leases of the other threads, which do not exist in the
 * child. */
void spw_device_lease_reset(void);
