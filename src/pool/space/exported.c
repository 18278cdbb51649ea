#include "pool/space/exported.h"

#include "common/grow.h"
#include "pool/space/pending.h"

bool spw_pool_exported_reserve(struct spw_exported *exported, size_t more)
{
    return SPW_GROW(&exported->granules, &exported->capacity, exported->count + more);
}

/* Returns true if no block is left in [address, end): all its extents are out of use. */
static bool is_empty(const struct spw_space *space, uint64_t address, uint64_t end)
{
    const struct spw_extent *e = spw_pool_space_find(space, address);

    while (e != NULL && e->address < end && e->kind == SPW_EXTENT_CLAIM) {
        e = e->next;
    }
    return e == NULL || e->address >= end;
}

static bool is_complete(const struct spw_backing *backing, size_t first, size_t last)
{
    const struct spw_granule *granules = backing->granules;

    while (
        first < last && !granules[first].pinned && granules[first].lost == SPW_LOST_NOTHING &&
        spw_pool_stream_queue_passed(backing->queues, granules[first].queue, granules[first].seq)) {
        first++;
    }
    return first == last;
}

/* Releases the chunk at a granule if it is unused. If the chunk has no block but cannot be released
 * yet, sets *waits. */
static bool release(struct spw_space *space, size_t granule, bool *waits)
{
    size_t end = spw_pool_backing_chunk_end(space->backing, granule);
    uint64_t address = spw_pool_backing_address(space->backing, granule);
    uint64_t behind = spw_pool_backing_address(space->backing, end);

    if (!is_empty(space, address, behind)) {
        return false;
    }
    if (!is_complete(space->backing, granule, end) ||
        !spw_pool_backing_release_exported(space->backing, granule)) {
        *waits = true;
        return false;
    }
    spw_pool_space_reinstate_range(space, address, behind);
    return true;
}

void spw_pool_exported_release(struct spw_exported *exported)
{
    bool waits = false;

    if (!exported->ending) {
        return;
    }
    spw_pool_poll_queues(exported->space, NULL, /* record */ true);
    for (size_t i = 0; i < exported->count;) {
        if (release(exported->space, exported->granules[i], &waits)) {
            exported->granules[i] = exported->granules[--exported->count];
        } else {
            i++;
        }
    }
    exported->ending = waits;
}
