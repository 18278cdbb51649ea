#include "pool/memory/alias.h"

#include "common/grow.h"

#include <stdlib.h>

static uint64_t size_of(const struct spw_aliases *aliases, unsigned order)
{
    return aliases->granule_bytes << order;
}

/* Takes unused addresses for a chunk. Returns 0 if none are left. */
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

/* Gives addresses back. If there is no memory for the record, the addresses are lost. */
static void put_address(struct spw_aliases *aliases, unsigned order, uint64_t address)
{
    struct spw_free_aliases *freed = &aliases->freed[order];

    if (SPW_GROW(&freed->addresses, &freed->capacity, freed->count + 1)) {
        freed->addresses[freed->count++] = address;
    }
}

/* This bit of a recorded address is set if the chunk is mapped there without access. */
static const uint64_t WITHOUT_ACCESS = 1;

static bool unmap(struct spw_aliases *aliases, unsigned order, uint64_t address)
{
    uint64_t bytes = size_of(aliases, order), done = bytes;

    if (aliases->vm->ops->unmap(aliases->vm, address, bytes, bytes, &done) != SPW_OK) {
        return false;
    }
    put_address(aliases, order, address);
    return true;
}

/* Returns the recorded address of a chunk; 0 if there is none. */
static uint64_t recorded(const struct spw_aliases *aliases, uint64_t chunk)
{
    return (uint64_t)(uintptr_t)spw_map_get(&aliases->addresses, chunk);
}

static bool record(struct spw_aliases *aliases, uint64_t chunk, uint64_t address)
{
    return spw_map_put(&aliases->addresses, chunk, (void *)(uintptr_t)address);
}

/* Maps a chunk and records its address. */
static enum spw_err map(struct spw_aliases *aliases, uint64_t chunk, unsigned order)
{
    uint64_t address = take_address(aliases, order);
    enum spw_err err;

    if (address == 0) {
        return SPW_E_NO_MEMORY;
    }
    if (!record(aliases, chunk, address | WITHOUT_ACCESS)) {
        put_address(aliases, order, address);
        return SPW_E_METADATA_NOMEM;
    }
    err = aliases->vm->ops->map(aliases->vm, address, size_of(aliases, order), chunk - 1);
    if (err != SPW_OK) {
        (void)spw_map_take(&aliases->addresses, chunk);
        put_address(aliases, order, address);
    }
    return err;
}

enum spw_err spw_pool_alias_get(struct spw_aliases *aliases, uint64_t chunk, unsigned order,
                                uint64_t *ret_address)
{
    uint64_t bytes = size_of(aliases, order), address;
    enum spw_err err = recorded(aliases, chunk) == 0 ? map(aliases, chunk, order) : SPW_OK;

    if (err != SPW_OK) {
        return err;
    }
    address = recorded(aliases, chunk) & ~WITHOUT_ACCESS;
    if (recorded(aliases, chunk) != address) {
        err = aliases->vm->ops->set_access(aliases->vm, address, bytes, bytes);
        if (err != SPW_OK) {
            (void)spw_pool_alias_drop(aliases, chunk, order);
            return err;
        }
        (void)record(aliases, chunk, address); /* needs no memory: the chunk has a record */
    }
    *ret_address = address;
    return SPW_OK;
}

bool spw_pool_alias_drop(struct spw_aliases *aliases, uint64_t chunk, unsigned order)
{
    uint64_t address = recorded(aliases, chunk) & ~WITHOUT_ACCESS;

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
    /* The values are not heap memory, so they are not freed. */
    spw_map_remove_if(&aliases->addresses, always, NULL);
    spw_map_clear(&aliases->addresses);
    for (unsigned order = 0; order < SPW_CHUNK_ORDERS; order++) {
        free(aliases->freed[order].addresses);
    }
}
