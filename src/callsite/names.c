#include "callsite/names.h"

#include "callsite/symbols.h"
#include "callsite/table.h"
#include "common/hash.h"
#include "system/demangle.h"
#include "system/lock.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 16, SLOTS_USED = SLOTS / 4 * 3 };

struct spw_callsite_name_slot {
    uintptr_t address; /* 0: free */
    struct spw_name name;
};

static struct spw_callsite_names *const known = &spw_callsite_state.names;

/* The caller of this and the following functions holds the lock. */
static struct spw_callsite_name_slot *find(uintptr_t address)
{
    size_t slot = (size_t)(spw_hash_mix(0, address) >> 16) & (SLOTS - 1);

    while (known->slots[slot].address != 0 && known->slots[slot].address != address) {
        slot = (slot + 1) & (SLOTS - 1);
    }
    return &known->slots[slot];
}

static const char *readable(const char *mangled)
{
    char *text = spw_demangle(mangled);

    return text != NULL ? text : mangled;
}

static void learn(const struct spw_symbol *symbol)
{
    struct spw_callsite_name_slot *slot = find(symbol->address);

    if (slot->address != 0 || known->used == SLOTS_USED) {
        return;
    }
    known->used++;
    slot->address = symbol->address;
    slot->name.library = symbol->module != NULL ? symbol->module->path : NULL;
    spw_callsite_symbol_text(symbol, known->text, sizeof(known->text));
    slot->name.mangled = known->text[0] != '\0' ? strdup(known->text) : NULL;
    slot->name.readable = slot->name.mangled != NULL ? readable(slot->name.mangled) : NULL;
}

static bool begin(void)
{
    if (known->slots == NULL) {
        known->slots = calloc(SLOTS, sizeof(*known->slots));
    }
    return known->slots != NULL;
}

void spw_callsite_names_of(const uint64_t *addresses, size_t count, struct spw_name *ret_names)
{
    struct spw_symbol *missing = known->missing;
    size_t missed = 0;

    /* Called without the lock. A program without the C++ library has no C++ names. */
    (void)spw_demangle_find(/* load */ false);
    memset(ret_names, 0, count * sizeof(*ret_names));
    spw_lock(&spw_locks.names);
    if (begin()) {
        for (size_t i = 0; i < count; i++) {
            if (find(spw_callsite_call(addresses[i]))->address == 0) {
                missing[missed++].address = spw_callsite_call(addresses[i]);
            }
        }
        missed = spw_callsite_symbols_sort(missing, missed);
        spw_callsite_symbols_name(missing, missed);
        for (size_t i = 0; i < missed; i++) {
            learn(&missing[i]);
        }
        for (size_t i = 0; i < count; i++) {
            ret_names[i] = find(spw_callsite_call(addresses[i]))->name;
        }
    }
    spw_unlock(&spw_locks.names);
}
