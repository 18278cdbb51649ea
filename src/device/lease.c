#include "device/lease.h"

#include "system/backoff.h"

void spw_device_lease_enter_slowly(void)
{
    struct spw_thread_slot *slot = spw_thread_slots_join();

    if (spw_thread_slots_is_shared(slot)) {
        atomic_fetch_add(&slot->leases, 1);
    } else {
        atomic_store_explicit(
            &slot->lease_epoch,
            atomic_load_explicit(&spw_thread_slots.lease_epoch, memory_order_relaxed),
            memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_seq_cst);
}

void spw_device_lease_leave_slowly(void)
{
    struct spw_thread_slot *slot = spw_thread_self.slot;

    if (spw_thread_slots_is_shared(slot)) {
        atomic_fetch_sub(&slot->leases, 1);
    } else {
        atomic_store_explicit(&slot->lease_epoch, 0, memory_order_release);
    }
}

uint64_t spw_device_lease_renew(void)
{
    uint64_t epoch = atomic_fetch_add(&spw_thread_slots.lease_epoch, 1) + 1;

    return spw_thread_slots_order() ? epoch : 0;
}

bool spw_device_lease_ended(uint64_t epoch, bool except_own)
{
    const struct spw_thread_slot *own =
        except_own && spw_thread_self.leases > 0 ? spw_thread_self.slot : NULL;
    const struct spw_thread_slot *last = &spw_thread_slots.slots[SPW_THREAD_SLOTS - 1];

    for (const struct spw_thread_slot *slot = spw_thread_slots.slots; slot < last; slot++) {
        uint64_t began = atomic_load_explicit(&slot->lease_epoch, memory_order_acquire);

        if (slot != own && began != 0 && began < epoch) {
            return false;
        }
    }
    return atomic_load(&last->leases) <= (own == last ? 1 : 0);
}

bool spw_device_lease_await(uint64_t epoch, bool except_own, uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    while (!spw_device_lease_ended(epoch, except_own)) {
        if (!spw_backoff_pause(&backoff)) {
            return false;
        }
    }
    return true;
}

void spw_device_lease_reset(void)
{
    const struct spw_thread_slot *held = spw_thread_self.leases > 0 ? spw_thread_self.slot : NULL;

    for (size_t i = 0; i < SPW_THREAD_SLOTS; i++) {
        struct spw_thread_slot *slot = &spw_thread_slots.slots[i];

        if (slot != held) {
            atomic_store(&slot->lease_epoch, 0);
        }
        atomic_store(&slot->leases, slot == held && spw_thread_slots_is_shared(slot) ? 1 : 0);
    }
}
