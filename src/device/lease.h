/* Leases: a pool, and all that belongs to it, stays valid while a call of the program uses it.
 *
 * A thread that destroys the last context of a device destroys the device's pool, while other
 * threads may be looking through the pools of all devices. So every call that may touch a pool
 * holds a lease from its beginning to its end. A closed pool is taken out of sight first, and
 * destroyed when every call that may have seen it has ended.
 *
 * The holder takes no lock: each thread records the epoch at the beginning of its call in its slot
 * (system/thread_slots.h). The thread that closes a pool begins a new epoch, and makes the slots of
 * all threads visible. Any thread, no lock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/likely.h"
#include "system/thread_slots.h"

/* The slow paths of the two functions below: the first lease of a thread, a shared slot, a system
 * without membarrier. */
void spw_device_lease_enter_slowly(void);
void spw_device_lease_leave_slowly(void);

/* Begins a lease, before a device's pool or its parts are used. Leases nest. */
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

/* Ends a lease. A pointer that was read under the lease must not be used any more. */
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

/* Begins a new epoch and returns it; call it after an object was taken out of sight. 0 when the
 * system cannot make other threads notice; then the object must never be destroyed. */
uint64_t spw_device_lease_renew(void);

/* True when every lease that began before `epoch` has ended; `except_own` leaves out the lease of
 * the calling thread. */
bool spw_device_lease_ended(uint64_t epoch, bool except_own);

/* Waits until spw_device_lease_ended() is true, at most `most_ns`; false when a lease has not ended
 * by then. */
bool spw_device_lease_await(uint64_t epoch, bool except_own, uint64_t most_ns);

/* In a child after fork: the other threads are gone. */
void spw_device_lease_reset(void);
