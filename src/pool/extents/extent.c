#include "pool/extents/extent.h"

#include <stdlib.h>

enum { SLAB_EXTENTS = 510 };

struct spw_extent_slab {
    struct spw_extent_slab *next;
    struct spw_extent extents[SLAB_EXTENTS];
};

bool spw_pool_extent_store_grow(struct spw_extent_store *store, size_t count)
{
    while (store->unused_count < count) {
        struct spw_extent_slab *slab = malloc(sizeof(*slab));

        if (slab == NULL) {
            return false;
        }
        slab->next = store->slabs;
        store->slabs = slab;
        for (size_t i = SLAB_EXTENTS; i-- > 0;) {
            spw_pool_extent_give(store, &slab->extents[i]);
        }
    }
    return true;
}

void spw_pool_extent_store_fini(struct spw_extent_store *store)
{
    while (store->slabs != NULL) {
        struct spw_extent_slab *slab = store->slabs;

        store->slabs = slab->next;
        free(slab);
    }
    *store = (struct spw_extent_store){0};
}
