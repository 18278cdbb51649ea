#include "pool/alias.h"

#include <stdlib.h>

static uint64_t size_of(const struct spw_aliases *aliases, unsigned order)
{
    return aliases->granule_bytes << order;
}

/* Finds free addresses for a chunk. 0: there are none. */
static uint64_t take_address(struct spw_aliases *aliases, unsigned order)
{
    struct spw_free_aliases *freed = &aliases->freed[order];
    uint64_t address = aliases->next;

    if (freed->count > 0) {
        return freed->addresses[--freed->count];
    }
    if (aliases->end - address < size_of(aliases, order)) {
        return 0;
    }
    aliases->next += size_of(aliases, order);
    return address;
}

/* Gives addresses back. Without memory for the record they are not used again. */
static void put_address(struct spw_aliases *aliases, unsigned order, uint64_t address)
{
    struct spw_free_aliases *freed = &aliases->freed[order];

    if (freed->count == freed->capacity) {
        size_t capacity = freed->capacity == 0 ? 64 : 2 * freed->capacity;
        uint64_t *grown = realloc(freed->addresses, capacity * sizeof(*grown));

        if (grown == NULL) {
            return;
        }
        freed->addresses = grown;
        freed->capacity = capacity;
    }
    freed->addresses[freed->count++] = address;
}

static bool unmap(struct spw_aliases *aliases, unsigned order, uint64_t address)
{
    uint64_t bytes = size_of(aliases, order), done = bytes;

    if (aliases->ops->unmap(aliases->vm, address, bytes, bytes, &done) != SPW_OK) {
        return false;
    }
    put_address(aliases, order, address);
    return true;
}

enum spw_err spw_pool_alias_get(struct spw_aliases *aliases, uint64_t chunk, unsigned order,
                                uint64_t *ret_address)
{
    uint64_t bytes = size_of(aliases, order);
    uint64_t address = (uint64_t)(uintptr_t)spw_map_get(&aliases->addresses, chunk);
    enum spw_err err;

    *ret_address = address;
    if (address != 0) {
        return SPW_OK;
    }
    address = take_address(aliases, order);
    if (address == 0) {
        return SPW_E_NO_MEMORY;
    }
    err = aliases->ops->map(aliases->vm, address, bytes, chunk - 1);
    if (err != SPW_OK) {
        put_address(aliases, order, address);
        return err;
    }
    err = aliases->ops->set_access(aliases->vm, address, bytes, bytes);
    if (err == SPW_OK && !spw_map_put(&aliases->addresses, chunk, (void *)(uintptr_t)address)) {
        err = SPW_E_METADATA_NOMEM;
    }
    if (err != SPW_OK) {
        (void)unmap(aliases, order, address);
    }
    *ret_address = address;
    return err;
}

bool spw_pool_alias_drop(struct spw_aliases *aliases, uint64_t chunk, unsigned order)
{
    uint64_t address = (uint64_t)(uintptr_t)spw_map_get(&aliases->addresses, chunk);

    if (address == 0) {
        return true;
    }
    if (!unmap(aliases, order, address)) {
        return false;
    }
    (void)spw_map_take(&aliases->addresses, chunk);
    return true;
}

static bool always(const void *value, const void *arg)
{
    return true;
}

void spw_pool_alias_fini(struct spw_aliases *aliases)
{
    /* The values are no memory to be freed. */
    spw_map_remove_if(&aliases->addresses, always, NULL);
    spw_map_clear(&aliases->addresses);
    for (unsigned order = 0; order < SPW_CHUNK_ORDERS; order++) {
        free(aliases->freed[order].addresses);
    }
}
