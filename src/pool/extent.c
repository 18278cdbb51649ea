#include "pool/extent.h"

#include <stdlib.h>

enum { SLAB_EXTENTS = 510 };

struct spw_extent_slab {
    struct spw_extent_slab *next;
    struct spw_extent extents[SLAB_EXTENTS];
};

void spw_age_append(struct spw_age_list *list, struct spw_extent *extent)
{
    extent->age.next = NULL;
    extent->age.prev = list->newest;
    if (list->newest != NULL) {
        list->newest->age.next = extent;
    } else {
        list->oldest = extent;
    }
    list->newest = extent;
}

void spw_age_remove(struct spw_age_list *list, struct spw_extent *extent)
{
    if (extent->age.prev != NULL) {
        extent->age.prev->age.next = extent->age.next;
    } else {
        list->oldest = extent->age.next;
    }
    if (extent->age.next != NULL) {
        extent->age.next->age.prev = extent->age.prev;
    } else {
        list->newest = extent->age.prev;
    }
}

bool spw_extent_reserve(struct spw_extent_store *store, size_t count)
{
    while (store->unused_count < count + store->held) {
        struct spw_extent_slab *slab = malloc(sizeof(*slab));

        if (slab == NULL) {
            return false;
        }
        slab->next = store->slabs;
        store->slabs = slab;
        for (size_t i = SLAB_EXTENTS; i-- > 0;) {
            spw_extent_give(store, &slab->extents[i]);
        }
    }
    return true;
}

struct spw_extent *spw_extent_take(struct spw_extent_store *store)
{
    struct spw_extent *extent = store->unused;

    store->unused = extent->next;
    store->unused_count--;
    return extent;
}

void spw_extent_give(struct spw_extent_store *store, struct spw_extent *extent)
{
    extent->next = store->unused;
    store->unused = extent;
    store->unused_count++;
}

void spw_extent_store_fini(struct spw_extent_store *store)
{
    while (store->slabs != NULL) {
        struct spw_extent_slab *slab = store->slabs;

        store->slabs = slab->next;
        free(slab);
    }
    *store = (struct spw_extent_store){0};
}
