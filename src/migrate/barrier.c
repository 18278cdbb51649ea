#include "migrate/barrier.h"

#include "common/backoff.h"
#include "common/futex.h"
#include "migrate/tuning.h"

struct spw_migrate_barrier spw_migrate_barrier;
_Thread_local uint32_t spw_migrate_barrier_depth __attribute__((tls_model("initial-exec")));

/* The calling thread holds the barrier for a pause; how often it has closed it again meanwhile. */
static _Thread_local bool holds __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t closings __attribute__((tls_model("initial-exec")));

/* Is told of threads that begin to wait for the end of a pause; NULL: nobody. */
static void (*_Atomic on_arrival)(void);

void spw_migrate_barrier_arm(void)
{
    atomic_store(&spw_migrate_barrier.armed, true);
}

void spw_migrate_barrier_reset(void)
{
    const struct spw_thread_slot *held = spw_migrate_barrier_inside() ? spw_thread_self.slot : NULL;

    for (size_t i = 0; i < SPW_THREAD_SLOTS; i++) {
        struct spw_thread_slot *slot = &spw_thread_slots.slots[i];

        atomic_store(&slot->submitting, slot == held ? 1 : 0);
    }
    atomic_store(&spw_migrate_barrier.closed, 0);
    atomic_store(&spw_migrate_barrier.held, 0);
    holds = false;
    closings = 0;
}

/* Marks the slot as inside, for a thread that needs a fence or shares its slot. */
static void mark_slot(struct spw_thread_slot *slot)
{
    if (spw_thread_slots_is_shared(slot)) {
        atomic_fetch_add(&slot->submitting, 1);
    } else {
        atomic_store_explicit(&slot->submitting, 1, memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_seq_cst);
}

static void leave_slot(struct spw_thread_slot *slot)
{
    if (spw_thread_slots_is_shared(slot)) {
        atomic_fetch_sub(&slot->submitting, 1);
    } else {
        atomic_store_explicit(&slot->submitting, 0, memory_order_release);
    }
}

/* Tells of a thread that begins to wait. */
static void announce_arrival(void)
{
    void (*arrived)(void) = atomic_load(&on_arrival);

    if (atomic_load(&spw_migrate_barrier.held) != 0 && arrived != NULL) {
        arrived();
    }
}

void spw_migrate_barrier_wait(struct spw_thread_slot *slot)
{
    uint32_t closed;

    /* A pause that begins to hold it meanwhile changes the value, and so hears of this thread. */
    while ((closed = atomic_load(&spw_migrate_barrier.closed)) != 0) {
        leave_slot(slot);
        announce_arrival();
        spw_futex_wait(&spw_migrate_barrier.closed, closed, NULL);
        mark_slot(slot);
    }
}

void spw_migrate_barrier_await_hold(void)
{
    while (!spw_migrate_barrier_inside() && atomic_load(&spw_migrate_barrier.held) != 0) {
        announce_arrival();
        spw_futex_wait(&spw_migrate_barrier.held, 1, NULL);
    }
}

void spw_migrate_barrier_acquire_slowly(void)
{
    struct spw_thread_slot *slot = spw_thread_slots_join();

    mark_slot(slot);
    spw_migrate_barrier_wait(slot);
}

void spw_migrate_barrier_release_slowly(void)
{
    struct spw_thread_slot *slot = spw_thread_self.slot;

    atomic_fetch_add(&slot->submissions, 1);
    leave_slot(slot);
}

/* True when another thread is inside. `mine`: the slot of the calling thread if it is inside, else
 * NULL. */
static bool has_submitters(const struct spw_thread_slot *mine)
{
    for (size_t i = 0; i < SPW_THREAD_SLOTS; i++) {
        const struct spw_thread_slot *slot = &spw_thread_slots.slots[i];
        uint32_t own = slot == mine ? 1 : 0;

        if (atomic_load_explicit(&slot->submitting, memory_order_acquire) > own) {
            return true;
        }
    }
    return false;
}

/* Threads may wait already, also when it was closed for a moment only. */
static void open_barrier(void)
{
    atomic_store(&spw_migrate_barrier.closed, 0);
    spw_futex_wake(&spw_migrate_barrier.closed);
}

/* Closes the barrier and waits as long as `backoff` has patience. */
static bool quiesce(struct spw_backoff *backoff)
{
    const struct spw_thread_slot *mine = spw_migrate_barrier_inside() ? spw_thread_self.slot : NULL;
    uint32_t open = 0;

    if (holds) {
        closings++;
        return true;
    }
    if (!atomic_load(&spw_migrate_barrier.armed) ||
        !atomic_compare_exchange_strong(&spw_migrate_barrier.closed, &open, 1)) {
        return false;
    }
    if (!spw_thread_slots_order()) {
        open_barrier();
        return false;
    }
    spw_migrate_barrier_depth++;
    while (has_submitters(mine)) {
        if (!spw_backoff_pause(backoff)) {
            spw_migrate_barrier_resume();
            return false;
        }
    }
    return true;
}

bool spw_migrate_barrier_quiesce(uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    return quiesce(&backoff);
}

void spw_migrate_barrier_resume(void)
{
    if (closings > 0) {
        closings--;
        return;
    }
    spw_migrate_barrier_depth--;
    open_barrier();
}

bool spw_migrate_barrier_hold(uint64_t most_ns, void (*arrived)(void))
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    atomic_store(&on_arrival, arrived);
    atomic_store(&spw_migrate_barrier.held, 1);
    while (!quiesce(&backoff)) {
        if (!spw_backoff_pause(&backoff)) {
            atomic_store(&spw_migrate_barrier.held, 0);
            spw_futex_wake(&spw_migrate_barrier.held);
            return false;
        }
    }
    holds = true;
    atomic_store(&spw_migrate_barrier.closed, 2);
    spw_futex_wake(&spw_migrate_barrier.closed);
    return true;
}

void spw_migrate_barrier_release_hold(void)
{
    holds = false;
    atomic_store(&spw_migrate_barrier.held, 0);
    spw_futex_wake(&spw_migrate_barrier.held);
    spw_migrate_barrier_resume();
}

uint64_t spw_migrate_barrier_submissions(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < SPW_THREAD_SLOTS; i++) {
        sum += atomic_load_explicit(&spw_thread_slots.slots[i].submissions, memory_order_acquire);
    }
    return sum;
}
