#include "migrate/move/barrier.h"

#include "system/backoff.h"
#include "system/futex.h"

struct spw_migrate_barrier spw_migrate_barrier;
_Thread_local uint32_t spw_migrate_barrier_depth __attribute__((tls_model("initial-exec")));

/* The calling thread holds the barrier for a pause. */
static _Thread_local bool holds __attribute__((tls_model("initial-exec")));

/* How often that thread has closed the barrier during the pause, and not yet resumed. */
static _Thread_local uint32_t closings __attribute__((tls_model("initial-exec")));

/* The calling thread has borrowed the barrier from a pause. */
static _Thread_local bool borrows __attribute__((tls_model("initial-exec")));

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
    atomic_store(&spw_migrate_barrier.loan, SPW_BARRIER_OWN);
    holds = borrows = false;
    closings = 0;
}

/* Marks the slot as inside, for a thread that needs a fence or whose slot is shared. */
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

/* If a pause holds the barrier, announces that this thread begins to wait for its end. */
static void announce_arrival(void)
{
    void (*arrived)(void) = atomic_load(&spw_migrate_barrier.on_arrival);

    if (atomic_load(&spw_migrate_barrier.held) != 0 && arrived != NULL) {
        arrived();
    }
}

/* Changes the loan from `from` to `to`. False when the loan is not `from`. */
static bool change_loan(uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&spw_migrate_barrier.loan, &from, to);
}

/* Takes the pass that a step gives. False when there is none. */
static bool take_pass(void)
{
    return change_loan(SPW_BARRIER_PASS, SPW_BARRIER_LENT);
}

void spw_migrate_barrier_wait(struct spw_thread_slot *slot)
{
    uint32_t closed;

    /* A pause that begins now changes the value, so this thread wakes and announces itself. The
     * slot is marked before a pass is taken, so that the pause sees a thread with a pass. */
    while ((closed = atomic_load(&spw_migrate_barrier.closed)) != 0 && !take_pass()) {
        leave_slot(slot);
        announce_arrival();
        spw_futex_wait(&spw_migrate_barrier.closed, closed, NULL);
        mark_slot(slot);
    }
}

void spw_migrate_barrier_await_hold(bool may_pass)
{
    uint32_t held;

    while (!spw_migrate_barrier_inside() && (held = atomic_load(&spw_migrate_barrier.held)) != 0 &&
           !(may_pass && take_pass())) {
        announce_arrival();
        spw_futex_wait(&spw_migrate_barrier.held, held, NULL);
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

/* True when another thread is inside. `mine` is the calling thread's slot if that thread is inside,
 * otherwise NULL. */
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

/* Wakes the waiting threads. Threads may wait even if the barrier was closed only briefly. */
static void open_barrier(void)
{
    atomic_store(&spw_migrate_barrier.closed, 0);
    spw_futex_wake(&spw_migrate_barrier.closed);
}

/* Waits until no other thread is inside. False at the limit of `backoff`. */
static bool await_submitters(const struct spw_thread_slot *mine, struct spw_backoff *backoff)
{
    while (has_submitters(mine)) {
        if (!spw_backoff_pause(backoff)) {
            return false;
        }
    }
    return true;
}

/* Closes an open barrier: sets `closed` to `value`, and makes every thread see this. */
static bool close_barrier(uint32_t value)
{
    uint32_t open = 0;

    if (!atomic_load(&spw_migrate_barrier.armed) ||
        !atomic_compare_exchange_strong(&spw_migrate_barrier.closed, &open, value)) {
        return false;
    }
    if (!spw_thread_slots_order()) {
        open_barrier();
        return false;
    }
    return true;
}

/* Borrows the barrier from the pause that holds it. No call passes while it is borrowed. */
static bool borrow(void)
{
    borrows = change_loan(SPW_BARRIER_LENT, SPW_BARRIER_BORROWED) ||
              change_loan(SPW_BARRIER_PASS, SPW_BARRIER_BORROWED);
    return borrows;
}

/* Gives the borrowed barrier back, or opens it if the pause has ended. */
static void give_back(void)
{
    borrows = false;
    if (!change_loan(SPW_BARRIER_BORROWED, SPW_BARRIER_LENT)) {
        atomic_store(&spw_migrate_barrier.loan, SPW_BARRIER_OWN);
        open_barrier();
    }
}

bool spw_migrate_barrier_quiesce(uint64_t most_ns)
{
    const struct spw_thread_slot *mine = spw_migrate_barrier_inside() ? spw_thread_self.slot : NULL;
    struct spw_backoff backoff = {.limit_ns = most_ns};

    if (holds) {
        closings++;
        return true;
    }
    if (!close_barrier(1) && !borrow()) {
        return false;
    }
    spw_migrate_barrier_depth++;
    if (!await_submitters(mine, &backoff)) {
        spw_migrate_barrier_resume();
        return false;
    }
    return true;
}

void spw_migrate_barrier_resume(void)
{
    if (closings > 0) {
        closings--;
        return;
    }
    spw_migrate_barrier_depth--;
    if (borrows) {
        give_back();
    } else {
        open_barrier();
    }
}

/* ---- pauses ---- */

static void let_requests_pass(void)
{
    atomic_store(&spw_migrate_barrier.held, 0);
    spw_futex_wake(&spw_migrate_barrier.held);
}

bool spw_migrate_barrier_hold(uint64_t most_ns, void (*arrived)(void))
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    atomic_store(&spw_migrate_barrier.on_arrival, arrived);
    atomic_store(&spw_migrate_barrier.held, 1);
    while (!close_barrier(2)) {
        if (!spw_backoff_pause(&backoff)) {
            let_requests_pass();
            return false;
        }
    }
    atomic_store(&spw_migrate_barrier.loan, SPW_BARRIER_LENT);
    spw_migrate_barrier_depth++;
    holds = true;
    return true;
}

bool spw_migrate_barrier_await_quiet(uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    return await_submitters(/* mine */ NULL, &backoff);
}

bool spw_migrate_barrier_claim(uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    while (!change_loan(SPW_BARRIER_LENT, SPW_BARRIER_OWN)) {
        if (!spw_backoff_pause(&backoff)) {
            return false;
        }
    }
    return await_submitters(/* mine */ NULL, &backoff);
}

void spw_migrate_barrier_step(uint64_t most_ns)
{
    struct spw_backoff backoff = {.limit_ns = most_ns};

    while (!change_loan(SPW_BARRIER_LENT, SPW_BARRIER_PASS)) {
        if (!spw_backoff_pause(&backoff)) {
            return;
        }
    }
    /* The new values make a thread that was about to sleep look again. */
    atomic_fetch_add(&spw_migrate_barrier.closed, 1);
    atomic_fetch_add(&spw_migrate_barrier.held, 1);
    spw_futex_wake(&spw_migrate_barrier.closed);
    spw_futex_wake(&spw_migrate_barrier.held);
    while (atomic_load(&spw_migrate_barrier.loan) == SPW_BARRIER_PASS &&
           spw_backoff_pause(&backoff)) {
    }
    (void)take_pass(); /* no call took it */
}

void spw_migrate_barrier_release_hold(void)
{
    holds = false;
    spw_migrate_barrier_depth--;
    let_requests_pass();
    while (!change_loan(SPW_BARRIER_BORROWED, SPW_BARRIER_LEFT)) {
        if (change_loan(SPW_BARRIER_LENT, SPW_BARRIER_OWN) ||
            atomic_load(&spw_migrate_barrier.loan) == SPW_BARRIER_OWN) {
            open_barrier();
            return;
        }
    }
}

uint64_t spw_migrate_barrier_submissions(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < SPW_THREAD_SLOTS; i++) {
        sum += atomic_load_explicit(&spw_thread_slots.slots[i].submissions, memory_order_acquire);
    }
    return sum;
}
