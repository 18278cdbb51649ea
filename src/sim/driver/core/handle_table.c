#include "sim/driver/core/handle_table.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Slabs double in size, so that few of them hold any number of handles. */
#define FIRST_SLAB_SLOTS 64
#define SLABS_MAX        24

/* One handle. Its address is in memory from malloc, so it never equals a small constant such as
 * CU_STREAM_LEGACY. */
struct slot {
    void *object;      /* NULL: free */
    struct slot *next; /* free list */
};

struct table {
    struct slot *slabs[SLABS_MAX];
    unsigned int slab_count;
    struct slot *free;
};

static struct table tables[SIM_HANDLE_KIND_COUNT];

static size_t slab_slots(unsigned int index)
{
    return (size_t)FIRST_SLAB_SLOTS << index;
}

/* Adds a slab; its slots are given out in ascending order. */
static int table_grow(struct table *table)
{
    size_t count = slab_slots(table->slab_count);
    struct slot *slab;

    if (table->slab_count == SLABS_MAX) {
        return -1;
    }
    slab = calloc(count, sizeof(*slab));
    if (slab == NULL) {
        return -1;
    }
    for (size_t i = count; i > 0; i--) {
        slab[i - 1].next = table->free;
        table->free = &slab[i - 1];
    }
    table->slabs[table->slab_count++] = slab;
    return 0;
}

/* The slot at that address, or NULL if there is none. */
static struct slot *table_find(const struct table *table, const void *handle)
{
    uintptr_t address = (uintptr_t)handle;

    for (unsigned int i = 0; i < table->slab_count; i++) {
        uintptr_t base = (uintptr_t)table->slabs[i];

        if (address >= base && address - base < slab_slots(i) * sizeof(struct slot)) {
            return (address - base) % sizeof(struct slot) == 0 ? (struct slot *)address : NULL;
        }
    }
    return NULL;
}

void *sim_handle_create(enum sim_handle_kind kind, void *object)
{
    struct table *table = &tables[kind];
    struct slot *slot;

    if (table->free == NULL && table_grow(table) != 0) {
        return NULL;
    }
    slot = table->free;
    table->free = slot->next;
    slot->next = NULL;
    slot->object = object;
    return slot;
}

void *sim_handle_object(enum sim_handle_kind kind, const void *handle)
{
    const struct slot *slot = table_find(&tables[kind], handle);

    return slot == NULL ? NULL : slot->object;
}

void sim_handle_destroy(enum sim_handle_kind kind, void *handle)
{
    struct table *table = &tables[kind];
    struct slot *slot = table_find(table, handle);

    if (slot == NULL || slot->object == NULL) {
        return;
    }
    slot->object = NULL;
    slot->next = table->free;
    table->free = slot;
}
