#include "system/thread_slots.h"

#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Until the system call is known to work, threads order their stores themselves. */
struct spw_thread_slots spw_thread_slots = {
    .fenced = true, .prepared = PTHREAD_ONCE_INIT, .lease_epoch = 1};
_Thread_local struct spw_thread_self spw_thread_self __attribute__((tls_model("initial-exec")));

/* Gives the slot of a thread back, and ends the calls that the thread is in. */
static void free_slot(void *cookie)
{
    struct spw_thread_slot *slot = cookie;

    spw_thread_self = (struct spw_thread_self){0};
    atomic_store_explicit(&slot->lease_epoch, 0, memory_order_release);
    atomic_store_explicit(&slot->submitting, 0, memory_order_release);
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

static void register_membarrier(void)
{
    atomic_store(&spw_thread_slots.fenced,
                 syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0);
}

static void prepare(void)
{
    spw_thread_slots.has_key = pthread_key_create(&spw_thread_slots.key, free_slot) == 0;
    register_membarrier();
}

/* Takes a free slot; NULL if none is free, or if the thread's exit would not give it back. */
static struct spw_thread_slot *take_slot(void)
{
    for (size_t i = 0; spw_thread_slots.has_key && i < SPW_THREAD_SLOTS - 1; i++) {
        struct spw_thread_slot *slot = &spw_thread_slots.slots[i];
        bool taken = false;

        if (!atomic_load_explicit(&slot->taken, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&slot->taken, &taken, true)) {
            if (pthread_setspecific(spw_thread_slots.key, slot) == 0) {
                return slot;
            }
            atomic_store(&slot->taken, false);
            return NULL;
        }
    }
    return NULL;
}

static void choose_path(struct spw_thread_slot *slot)
{
    bool slow = spw_thread_slots_is_shared(slot) || atomic_load(&spw_thread_slots.fenced);

    spw_thread_self.slot = slot;
    spw_thread_self.quick = slow ? NULL : slot;
}

struct spw_thread_slot *spw_thread_slots_join(void)
{
    if (spw_thread_self.slot == NULL) {
        struct spw_thread_slot *slot;

        pthread_once(&spw_thread_slots.prepared, prepare);
        slot = take_slot();
        choose_path(slot != NULL ? slot : &spw_thread_slots.slots[SPW_THREAD_SLOTS - 1]);
    }
    return spw_thread_self.slot;
}

bool spw_thread_slots_order(void)
{
    pthread_once(&spw_thread_slots.prepared, prepare);
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(&spw_thread_slots.fenced) ||
           syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void spw_thread_slots_reset(void)
{
    for (size_t i = 0; i < SPW_THREAD_SLOTS; i++) {
        struct spw_thread_slot *slot = &spw_thread_slots.slots[i];

        atomic_store(&slot->taken, slot == spw_thread_self.slot);
    }
    if (!atomic_load(&spw_thread_slots.fenced)) {
        register_membarrier();
    }
    if (spw_thread_self.slot != NULL) {
        choose_path(spw_thread_self.slot);
    }
}
