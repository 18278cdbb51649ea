#include "system/loader.h"

#include "common/likely.h"
#include "system/backoff.h"
#include "system/lock.h"

#include <stdatomic.h>
#include <stdint.h>

static struct spw_loader_gate *const gate = &spw_locks.loader;

static void enter_after_forks(void)
{
    struct spw_backoff backoff = {.limit_ns = SPW_LOADER_ENTER_MS * UINT64_C(1000000)};

    do {
        atomic_fetch_sub(&gate->inside, 1);
        while (atomic_load(&gate->forks) != 0) {
            if (!spw_backoff_pause(&backoff)) {
                atomic_fetch_add(&gate->inside, 1);
                return;
            }
        }
        atomic_fetch_add(&gate->inside, 1);
    } while (atomic_load(&gate->forks) != 0);
}

void spw_loader_enter(void)
{
    atomic_fetch_add(&gate->inside, 1);
    if (SPW_UNLIKELY(atomic_load(&gate->forks) != 0)) {
        enter_after_forks();
    }
}

void spw_loader_leave(void)
{
    atomic_fetch_sub(&gate->inside, 1);
}

int spw_loader_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                       void *context)
{
    int result;

    spw_loader_enter();
    result = dl_iterate_phdr(visit, context);
    spw_loader_leave();
    return result;
}

void spw_loader_before_fork(void)
{
    struct spw_backoff backoff = {.limit_ns = SPW_LOADER_FORK_MS * UINT64_C(1000000)};

    atomic_fetch_add(&gate->forks, 1);
    while (atomic_load(&gate->inside) != 0 && spw_backoff_pause(&backoff)) {
    }
}

void spw_loader_after_fork(bool child)
{
    if (child) {
        atomic_store(&gate->inside, 0);
        atomic_store(&gate->forks, 0);
    } else {
        atomic_fetch_sub(&gate->forks, 1);
    }
}
