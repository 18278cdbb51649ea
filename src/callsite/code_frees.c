#include "callsite/code_frees.h"

#include "callsite/cpython/layout.h"
#include "callsite/state.h"

#include <stdatomic.h>

static struct spw_callsite_code_frees *const frees = &spw_callsite_state.code_frees;

static _Atomic(spw_callsite_free_code *) *slot_of(uintptr_t code_type)
{
    return (void *)(code_type + SPW_PYTHON_TYPE_FREE);
}

/* Runs with the interpreter's lock. */
static void count_and_free(void *code)
{
    atomic_fetch_add_explicit(&frees->count, 1, memory_order_relaxed);
    frees->free(code);
}

void spw_callsite_code_frees_count(uintptr_t code_type)
{
    _Atomic(spw_callsite_free_code *) *slot = slot_of(code_type);

    if (frees->free == NULL && atomic_load(slot) != NULL) {
        frees->free = atomic_load(slot);
        atomic_store(slot, count_and_free);
    }
}

uint64_t spw_callsite_code_frees(uintptr_t code_type)
{
    bool counts = atomic_load_explicit(slot_of(code_type), memory_order_relaxed) == count_and_free;

    return counts ? atomic_load_explicit(&frees->count, memory_order_relaxed) + 1 : 0;
}
