#include "pool/space/exported.h"

#include "common/grow.h"
#include "pool/alloc/state.h"
#include "pool/space/pending.h"

bool spw_pool_exported_reserve(struct spw_exported *exported, size_t more)
{
    return SPW_GROW(&exported->granules, &exported->capacity, exported->count + more);
}

/* True if no block is left in [address, end): all its extents are out of use. */
static bool is_empty(const struct spw_pool *pool, uint64_t address, uint64_t end)
{
    const struct spw_extent *e = spw_pool_space_find(&pool->space, address);

    while (e != NULL && e->address < end && e->kind == SPW_EXTENT_CLAIM) {
        e = e->next;
    }
    return e == NULL || e->address >= end;
}

static bool is_complete(const struct spw_pool *pool, size_t first, size_t last)
{
    const struct spw_granule *granules = pool->backing.granules;

    while (
        first < last && !granules[first].pinned && granules[first].lost == SPW_LOST_NOTHING &&
        spw_pool_stream_queue_passed(&pool->queues, granules[first].queue, granules[first].seq)) {
        first++;
    }
    return first == last;
}

/* Releases the chunk at a granule if it is unused. *waits: it has no block, but cannot be released
 * yet. */
static bool release(struct spw_pool *pool, size_t granule, bool *waits)
{
    size_t end = spw_pool_backing_chunk_end(&pool->backing, granule);
    uint64_t bytes = pool->backing.granule_bytes;
    uint64_t address = pool->backing.base + granule * bytes;

    if (!is_empty(pool, address, address + (end - granule) * bytes)) {
        return false;
    }
    if (!is_complete(pool, granule, end) ||
        !spw_pool_backing_release_exported(&pool->backing, granule)) {
        *waits = true;
        return false;
    }
    spw_pool_space_reinstate_range(&pool->space, address, address + (end - granule) * bytes);
    return true;
}

void spw_pool_exported_release(struct spw_pool *pool)
{
    struct spw_exported *exported = &pool->exported;
    bool waits = false;

    if (!exported->ending || pool->shut) {
        return;
    }
    spw_pool_poll_queues(pool, NULL, /* record */ true);
    for (size_t i = 0; i < exported->count;) {
        if (release(pool, exported->granules[i], &waits)) {
            exported->granules[i] = exported->granules[--exported->count];
        } else {
            i++;
        }
    }
    exported->ending = waits;
}
