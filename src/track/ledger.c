#include "track/ledger.h"

#include "common/lock.h"
#include "track/state.h"

#include <stdlib.h>

void spw_track_ledger_add(uint64_t address, const struct spw_ledger_entry *entry)
{
    struct spw_ledger_entry *copy = malloc(sizeof(*copy));
    struct spw_ledger_entry *stale;

    if (copy == NULL) {
        return;
    }
    *copy = *entry;
    spw_lock(&spw_locks.ledger);
    stale = spw_map_take(&spw_process.ledger.entries, address);
    if (!spw_map_put(&spw_process.ledger.entries, address, copy)) {
        free(copy);
    }
    spw_unlock(&spw_locks.ledger);
    free(stale);
}

bool spw_track_ledger_remove(uint64_t address, struct spw_ledger_entry *ret_entry)
{
    struct spw_ledger_entry *entry;

    spw_lock(&spw_locks.ledger);
    entry = spw_map_take(&spw_process.ledger.entries, address);
    spw_unlock(&spw_locks.ledger);
    if (entry == NULL) {
        return false;
    }
    *ret_entry = *entry;
    free(entry);
    return true;
}

void spw_track_ledger_reset(void)
{
    spw_lock(&spw_locks.ledger);
    spw_map_clear(&spw_process.ledger.entries);
    spw_unlock(&spw_locks.ledger);
}
