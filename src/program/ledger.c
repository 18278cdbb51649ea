#include "program/ledger.h"

#include "program/state.h"
#include "system/lock.h"

#include <stdlib.h>

/* An allocation in the map. */
struct spw_entered {
    uint64_t address;
    struct spw_ledger_entry entry;
    struct spw_entered *next; /* next removed allocation */
};

void spw_program_ledger_add(uint64_t address, const struct spw_ledger_entry *entry)
{
    struct spw_entered *copy = malloc(sizeof(*copy));
    struct spw_entered *stale;

    if (copy == NULL) {
        return;
    }
    *copy = (struct spw_entered){address, *entry, NULL};
    spw_lock(&spw_locks.ledger);
    stale = spw_map_take(&spw_program.ledger.entries, address);
    if (!spw_map_put(&spw_program.ledger.entries, address, copy)) {
        free(copy);
    }
    spw_unlock(&spw_locks.ledger);
    free(stale);
}

bool spw_program_ledger_remove(uint64_t address, struct spw_ledger_entry *ret_entry)
{
    struct spw_entered *entered;

    spw_lock(&spw_locks.ledger);
    entered = spw_map_take(&spw_program.ledger.entries, address);
    spw_unlock(&spw_locks.ledger);
    if (entered == NULL) {
        return false;
    }
    *ret_entry = entered->entry;
    free(entered);
    return true;
}

static bool belongs_to(const void *entered, const void *context)
{
    return ((const struct spw_entered *)entered)->entry.context == context;
}

void spw_program_ledger_end_context(const void *context,
                                    void (*visit)(uint64_t address,
                                                  const struct spw_ledger_entry *entry))
{
    struct spw_entered *entered, *removed = NULL;
    size_t cursor = 0;

    spw_lock(&spw_locks.ledger);
    while ((entered = spw_map_next(&spw_program.ledger.entries, &cursor)) != NULL) {
        if (belongs_to(entered, context)) {
            entered->next = removed;
            removed = entered;
        }
    }
    spw_map_remove_if(&spw_program.ledger.entries, belongs_to, context);
    spw_unlock(&spw_locks.ledger);
    while (removed != NULL) {
        entered = removed;
        removed = entered->next;
        visit(entered->address, &entered->entry);
        free(entered);
    }
}

void spw_program_ledger_reset(void)
{
    spw_lock(&spw_locks.ledger);
    spw_map_clear(&spw_program.ledger.entries);
    spw_unlock(&spw_locks.ledger);
}
