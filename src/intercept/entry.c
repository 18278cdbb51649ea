#include "intercept/entry.h"

#include <stddef.h>
#include <stdint.h>

void *spw_intercept_entry_address(enum spw_fn fn)
{
    return (void *)(uintptr_t)spw_intercept_entries[fn];
}

enum spw_fn spw_intercept_entry_find(const void *address)
{
    size_t fn = 0;

    while (fn < SPW_FN_COUNT && (uintptr_t)spw_intercept_entries[fn] != (uintptr_t)address) {
        fn++;
    }
    return (enum spw_fn)fn;
}
