#include "migrate/barrier.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/backoff.h"
#include "migrate/tuning.h"

struct spw_migrate_barrier spw_migrate_barrier;
_Thread_local struct spw_migrate_barrier_thread spw_migrate_barrier_thread
    __attribute__((tls_model("initial-exec")));

static pthread_key_t at_thread_exit;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

static void free_slot(void *cookie)
{
    struct spw_migrate_barrier_slot *slot = cookie;

    spw_migrate_barrier_thread.slot = NULL;
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

static void make_key(void)
{
    has_key = pthread_key_create(&at_thread_exit, free_slot) == 0;
}

void spw_migrate_barrier_arm(void)
{
    pthread_once(&key_once, make_key);
    atomic_store(&spw_migrate_barrier.needs_fence,
                 syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0);
    atomic_store(&spw_migrate_barrier.armed, true);
}

void spw_migrate_barrier_reset(void)
{
    for (size_t i = 0; i < SPW_MIGRATE_BARRIER_SLOTS; i++) {
        struct spw_migrate_barrier_slot *slot = &spw_migrate_barrier.slots[i];

        atomic_store(&slot->inside, slot == spw_migrate_barrier_thread.slot &&
                                        spw_migrate_barrier_thread.depth > 0);
        atomic_store(&slot->taken, slot == spw_migrate_barrier_thread.slot);
    }
    atomic_store(&spw_migrate_barrier.closed, 0);
}

struct spw_migrate_barrier_slot *spw_migrate_barrier_join(void)
{
    struct spw_migrate_barrier_slot *slot =
        &spw_migrate_barrier.slots[SPW_MIGRATE_BARRIER_SLOTS - 1];

    /* Without the key nobody would give a slot back at thread exit, so all threads share the last
     * one. */
    for (size_t i = 0; has_key && i < SPW_MIGRATE_BARRIER_SLOTS - 1; i++) {
        bool taken = false;

        if (!atomic_load_explicit(&spw_migrate_barrier.slots[i].taken, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&spw_migrate_barrier.slots[i].taken, &taken, true)) {
            slot = &spw_migrate_barrier.slots[i];
            if (pthread_setspecific(at_thread_exit, slot) != 0) {
                atomic_store(&slot->taken, false);
                slot = &spw_migrate_barrier.slots[SPW_MIGRATE_BARRIER_SLOTS - 1];
            }
            break;
        }
    }
    spw_migrate_barrier_thread.slot = slot;
    return slot;
}

static void leave_slot(struct spw_migrate_barrier_slot *slot)
{
    if (spw_migrate_barrier_shared(slot)) {
        atomic_fetch_sub(&slot->inside, 1);
    } else {
        atomic_store_explicit(&slot->inside, 0, memory_order_release);
    }
}

void spw_migrate_barrier_wait(struct spw_migrate_barrier_slot *slot)
{
    while (atomic_load(&spw_migrate_barrier.closed) != 0) {
        leave_slot(slot);
        (void)syscall(SYS_futex, &spw_migrate_barrier.closed, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
        spw_migrate_barrier_mark(slot);
    }
}

/* Orders the readers: afterwards every other thread has either published that it is inside, or will
 * see the barrier closed. */
static bool order_readers(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(&spw_migrate_barrier.needs_fence) ||
           syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* True when another thread is inside. `mine`: the slot of the calling thread if it is inside, else
 * NULL. */
static bool has_submitters(const struct spw_migrate_barrier_slot *mine)
{
    for (size_t i = 0; i < SPW_MIGRATE_BARRIER_SLOTS; i++) {
        const struct spw_migrate_barrier_slot *slot = &spw_migrate_barrier.slots[i];
        uint32_t own = slot == mine ? 1 : 0;

        if (atomic_load_explicit(&slot->inside, memory_order_acquire) > own) {
            return true;
        }
    }
    return false;
}

bool spw_migrate_barrier_quiesce(uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};
    const struct spw_migrate_barrier_slot *mine =
        spw_migrate_barrier_inside() ? spw_migrate_barrier_thread.slot : NULL;
    uint32_t open = 0;

    if (!atomic_load(&spw_migrate_barrier.armed) ||
        !atomic_compare_exchange_strong(&spw_migrate_barrier.closed, &open, 1)) {
        return false;
    }
    if (!order_readers()) {
        atomic_store(&spw_migrate_barrier.closed, 0);
        return false;
    }
    spw_migrate_barrier_thread.depth++;
    while (has_submitters(mine)) {
        if (!spw_backoff_pause(&backoff)) {
            spw_migrate_barrier_resume();
            return false;
        }
    }
    return true;
}

void spw_migrate_barrier_resume(void)
{
    spw_migrate_barrier_thread.depth--;
    atomic_store(&spw_migrate_barrier.closed, 0);
    (void)syscall(SYS_futex, &spw_migrate_barrier.closed, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL,
                  0);
}

uint64_t spw_migrate_barrier_submissions(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < SPW_MIGRATE_BARRIER_SLOTS; i++) {
        sum +=
            atomic_load_explicit(&spw_migrate_barrier.slots[i].submissions, memory_order_acquire);
    }
    return sum;
}
