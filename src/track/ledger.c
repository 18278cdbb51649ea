#include "track/ledger.h"

#include "common/map.h"

#include <pthread.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    struct spw_map entries; /* by address */
} ledger = {.lock = PTHREAD_MUTEX_INITIALIZER};

void spw_track_ledger_add(uint64_t address, const struct spw_ledger_entry *entry)
{
    struct spw_ledger_entry *copy = malloc(sizeof(*copy));
    struct spw_ledger_entry *stale;

    if (copy == NULL) {
        return;
    }
    *copy = *entry;
    pthread_mutex_lock(&ledger.lock);
    stale = spw_map_take(&ledger.entries, address);
    if (!spw_map_put(&ledger.entries, address, copy)) {
        free(copy);
    }
    pthread_mutex_unlock(&ledger.lock);
    free(stale);
}

bool spw_track_ledger_remove(uint64_t address, struct spw_ledger_entry *ret_entry)
{
    struct spw_ledger_entry *entry;

    pthread_mutex_lock(&ledger.lock);
    entry = spw_map_take(&ledger.entries, address);
    pthread_mutex_unlock(&ledger.lock);
    if (entry == NULL) {
        return false;
    }
    *ret_entry = *entry;
    free(entry);
    return true;
}

void spw_track_ledger_lock(void)
{
    pthread_mutex_lock(&ledger.lock);
}

void spw_track_ledger_unlock(void)
{
    pthread_mutex_unlock(&ledger.lock);
}

void spw_track_ledger_reset(void)
{
    pthread_mutex_lock(&ledger.lock);
    spw_map_clear(&ledger.entries);
    pthread_mutex_unlock(&ledger.lock);
}
