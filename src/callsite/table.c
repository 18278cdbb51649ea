#include "callsite/table.h"

#include "common/hash.h"

#include <string.h>
#include <sys/mman.h>

enum { UNIT = 8 };

static void *reserve(size_t bytes)
{
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return address == MAP_FAILED ? NULL : address;
}

static void release(void *address, size_t bytes)
{
    if (address != NULL) {
        (void)munmap(address, bytes);
    }
}

bool spw_callsite_table_init(struct spw_callsite_table *sites, uint32_t most, size_t bytes)
{
    *sites = (struct spw_callsite_table){.most = most, .capacity = bytes};
    sites->base = reserve(bytes);
    sites->offsets = reserve((most + (size_t)1) * sizeof(sites->offsets[0]));
    sites->slots = reserve(most * (size_t)2 * sizeof(sites->slots[0]));
    if (sites->base == NULL || sites->offsets == NULL || sites->slots == NULL) {
        spw_callsite_table_fini(sites);
        return false;
    }
    return true;
}

void spw_callsite_table_fini(struct spw_callsite_table *sites)
{
    release(sites->base, sites->capacity);
    release(sites->offsets, (sites->most + (size_t)1) * sizeof(sites->offsets[0]));
    release(sites->slots, sites->most * (size_t)2 * sizeof(sites->slots[0]));
    *sites = (struct spw_callsite_table){0};
}

static uint64_t hash_of(const struct spw_stack *stack)
{
    uint64_t hash = spw_hash_mix((uintptr_t)stack->api, (uint64_t)stack->tag << 32 | stack->thread);

    hash = spw_hash_mix(hash, (uint64_t)stack->native_count << 32 | stack->python_count << 1 |
                                  stack->cut);
    for (unsigned i = 0; i < stack->native_count; i++) {
        hash = spw_hash_mix(hash, stack->native[i]);
    }
    for (unsigned i = 0; i < stack->python_count; i++) {
        const struct spw_callsite_line *line = &stack->python[i];

        hash = spw_hash_mix(hash, (uint64_t)line->file << 32 | line->function);
        hash = spw_hash_mix(hash, line->line);
    }
    return hash;
}

static const struct spw_callsite *site_of(const struct spw_callsite_table *sites, uint32_t number)
{
    return (const struct spw_callsite *)(sites->base + (size_t)sites->offsets[number] * UNIT);
}

static bool is_stack(const struct spw_callsite *site, uint64_t hash, const struct spw_stack *stack)
{
    return site->hash == hash && site->api == stack->api && site->thread == stack->thread &&
           site->tag == stack->tag && site->native_count == stack->native_count &&
           site->python_count == stack->python_count && site->cut == stack->cut &&
           memcmp(site->native, stack->native, stack->native_count * sizeof(stack->native[0])) ==
               0 &&
           memcmp(spw_callsite_lines(site), stack->python,
                  stack->python_count * sizeof(stack->python[0])) == 0;
}

static uint32_t append(struct spw_callsite_table *sites, uint64_t hash,
                       const struct spw_stack *stack)
{
    size_t native = stack->native_count * sizeof(stack->native[0]);
    size_t python = stack->python_count * sizeof(stack->python[0]);
    size_t bytes = (sizeof(struct spw_callsite) + native + python + UNIT - 1) / UNIT * UNIT;
    uint32_t number = atomic_load_explicit(&sites->count, memory_order_relaxed) + 1;
    struct spw_callsite *site;

    if (number > sites->most || sites->used + bytes > sites->capacity) {
        atomic_fetch_add_explicit(&sites->refused, 1, memory_order_relaxed);
        return 0;
    }
    site = (struct spw_callsite *)(sites->base + sites->used);
    *site = (struct spw_callsite){.hash = hash,
                                  .api = stack->api,
                                  .thread = stack->thread,
                                  .tag = stack->tag,
                                  .modules = stack->modules,
                                  .native_count = stack->native_count,
                                  .python_count = stack->python_count,
                                  .cut = stack->cut};
    memcpy(site->native, stack->native, native);
    memcpy(site->native + site->native_count, stack->python, python);
    sites->offsets[number] = (uint32_t)(sites->used / UNIT);
    sites->used += bytes;
    atomic_store_explicit(&sites->count, number, memory_order_release);
    return number;
}

/* The slot of a stack: it has the number of the stack's site, or is free. */
static uint32_t slot_of(const struct spw_callsite_table *sites, uint64_t hash,
                        const struct spw_stack *stack)
{
    uint32_t mask = sites->most * 2 - 1;
    uint32_t slot = (uint32_t)(hash >> 24) & mask;

    while (sites->slots[slot] != 0 && !is_stack(site_of(sites, sites->slots[slot]), hash, stack)) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

uint32_t spw_callsite_table_find(const struct spw_callsite_table *sites,
                                 const struct spw_stack *stack)
{
    return sites->base == NULL ? 0 : sites->slots[slot_of(sites, hash_of(stack), stack)];
}

uint32_t spw_callsite_table_intern(struct spw_callsite_table *sites, const struct spw_stack *stack)
{
    uint64_t hash = hash_of(stack);
    uint32_t slot;

    if (sites->base == NULL) {
        return 0;
    }
    slot = slot_of(sites, hash, stack);
    if (sites->slots[slot] == 0) {
        sites->slots[slot] = append(sites, hash, stack);
    }
    return sites->slots[slot];
}

const struct spw_callsite *spw_callsite_table_get(const struct spw_callsite_table *sites,
                                                  uint32_t number)
{
    uint32_t count = atomic_load_explicit(&sites->count, memory_order_acquire);

    return number == 0 || number > count ? NULL : site_of(sites, number);
}
