#include "pool/space/heaps.h"

/* Returns an extent near `address`. It comes from the record in the granule of `address`, or from
 * the next lower granule with a record. The record is that of the last block that began in the
 * granule, and may now be in use for another extent. Any extent with a byte in the granule is near
 * enough. */
static struct spw_extent *find_near(const struct spw_heap *heap, const struct spw_backing *backing,
                                    uint64_t address)
{
    uint64_t granule = spw_pool_backing_down(backing, address);

    for (; granule >= heap->base; granule -= backing->granule_bytes) {
        struct spw_extent *e = backing->granules[spw_pool_backing_index(backing, granule)].start;

        if (e != NULL && e->bytes > 0 && e->address < granule + backing->granule_bytes &&
            spw_pool_extent_end(e) > granule) {
            return e;
        }
    }
    return heap->first;
}

static const struct spw_heap *heap_at(const struct spw_heap heaps[SPW_HEAP_COUNT], uint64_t address)
{
    for (int i = 0; i < SPW_HEAP_COUNT; i++) {
        if (address >= heaps[i].base && address < heaps[i].frontier) {
            return &heaps[i];
        }
    }
    return NULL;
}

/* Returns the first extent of the first heap, from `heap` on, that has an extent. */
static struct spw_extent *first_from(const struct spw_heap heaps[SPW_HEAP_COUNT], int heap)
{
    struct spw_extent *first = NULL;

    for (; heap < SPW_HEAP_COUNT && first == NULL; heap++) {
        first = heap != SPW_HEAP_HOST ? heaps[heap].first : NULL;
    }
    return first;
}

struct spw_extent *spw_pool_heaps_first_large(const struct spw_heap heaps[SPW_HEAP_COUNT])
{
    return first_from(heaps, SPW_HEAP_LARGE);
}

struct spw_extent *spw_pool_heaps_next_large(const struct spw_heap heaps[SPW_HEAP_COUNT],
                                             const struct spw_extent *extent)
{
    return extent->next != NULL ? extent->next : first_from(heaps, extent->heap + 1);
}

struct spw_extent *spw_pool_heaps_find(const struct spw_heap heaps[SPW_HEAP_COUNT],
                                       const struct spw_backing *backing, uint64_t address)
{
    const struct spw_heap *heap = heap_at(heaps, address);
    struct spw_extent *e;

    if (heap == NULL) {
        return NULL;
    }
    e = find_near(heap, backing, address);
    while (e->address > address) {
        e = e->prev;
    }
    while (spw_pool_extent_end(e) <= address) {
        e = e->next;
    }
    return e;
}
