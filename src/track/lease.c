#include "track/lease.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/backoff.h"

/* Until the system call is known to work, threads order their stores themselves. */
struct spw_leases spw_leases = {.epoch = 1, .fenced = true};
_Thread_local struct spw_lease_thread spw_lease_thread __attribute__((tls_model("initial-exec")));

static pthread_key_t at_thread_exit;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

/* A thread that ends inside a call holds its lease no longer. */
static void free_slot(void *cookie)
{
    struct spw_lease_slot *slot = cookie;

    spw_lease_thread = (struct spw_lease_thread){0};
    atomic_store_explicit(&slot->epoch, 0, memory_order_release);
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

static void make_key(void)
{
    has_key = pthread_key_create(&at_thread_exit, free_slot) == 0;
    atomic_store(&spw_leases.fenced,
                 syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0);
}

static bool is_shared(const struct spw_lease_slot *slot)
{
    return slot == &spw_leases.slots[SPW_LEASE_SLOTS - 1];
}

/* Finds a slot for the calling thread. */
static struct spw_lease_slot *join(void)
{
    struct spw_lease_slot *slot = &spw_leases.slots[SPW_LEASE_SLOTS - 1];

    pthread_once(&key_once, make_key);
    /* A slot that nobody gives back would be lost with its thread. */
    for (size_t i = 0; has_key && i < SPW_LEASE_SLOTS - 1; i++) {
        bool taken = false;

        if (!atomic_load_explicit(&spw_leases.slots[i].taken, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&spw_leases.slots[i].taken, &taken, true)) {
            slot = &spw_leases.slots[i];
            if (pthread_setspecific(at_thread_exit, slot) != 0) {
                atomic_store(&slot->taken, false);
                slot = &spw_leases.slots[SPW_LEASE_SLOTS - 1];
            }
            break;
        }
    }
    spw_lease_thread.slot = slot;
    spw_lease_thread.quick = is_shared(slot) || atomic_load(&spw_leases.fenced) ? NULL : slot;
    return slot;
}

void spw_track_lease_enter_slowly(void)
{
    struct spw_lease_slot *slot = spw_lease_thread.slot;

    if (slot == NULL) {
        slot = join();
    }
    if (is_shared(slot)) {
        atomic_fetch_add(&slot->sharing, 1);
    } else {
        atomic_store_explicit(&slot->epoch,
                              atomic_load_explicit(&spw_leases.epoch, memory_order_relaxed),
                              memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_seq_cst);
}

void spw_track_lease_leave_slowly(void)
{
    struct spw_lease_slot *slot = spw_lease_thread.slot;

    if (is_shared(slot)) {
        atomic_fetch_sub(&slot->sharing, 1);
    } else {
        atomic_store_explicit(&slot->epoch, 0, memory_order_release);
    }
}

uint64_t spw_track_lease_renew(void)
{
    uint64_t epoch = atomic_fetch_add(&spw_leases.epoch, 1) + 1;

    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load(&spw_leases.fenced) &&
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
        return 0;
    }
    return epoch;
}

bool spw_track_lease_ended(uint64_t epoch, bool except_own)
{
    const struct spw_lease_slot *own =
        except_own && spw_lease_thread.depth > 0 ? spw_lease_thread.slot : NULL;
    const struct spw_lease_slot *last = &spw_leases.slots[SPW_LEASE_SLOTS - 1];

    for (const struct spw_lease_slot *slot = spw_leases.slots; slot < last; slot++) {
        uint64_t began = atomic_load_explicit(&slot->epoch, memory_order_acquire);

        if (slot != own && began != 0 && began < epoch) {
            return false;
        }
    }
    return atomic_load(&last->sharing) <= (own == last ? 1 : 0);
}

bool spw_track_lease_await(uint64_t epoch, bool except_own, uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    while (!spw_track_lease_ended(epoch, except_own)) {
        if (!spw_backoff_pause(&backoff)) {
            return false;
        }
    }
    return true;
}

void spw_track_lease_reset(void)
{
    bool holds = spw_lease_thread.depth > 0;

    for (size_t i = 0; i < SPW_LEASE_SLOTS; i++) {
        struct spw_lease_slot *slot = &spw_leases.slots[i];
        bool own = slot == spw_lease_thread.slot;

        if (!own || !holds) {
            atomic_store(&slot->epoch, 0);
        }
        atomic_store(&slot->sharing, own && holds && is_shared(slot) ? 1 : 0);
        atomic_store(&slot->taken, own);
    }
}
