#include "pool/memory/away.h"

#include "pool/memory/alias.h"
#include "pool/memory/old_chunks.h"

static void mark(struct spw_backing *backing, size_t first, size_t last, bool away)
{
    for (size_t i = first; i < last; i++) {
        backing->away += (size_t)away - backing->granules[i].away;
        backing->granules[i].away = away;
    }
}

/* Maps every chunk of granules [first, last) at its second address as well. */
static bool map_aliases(struct spw_backing *backing, size_t first, size_t last)
{
    uint64_t address;

    while (first < last &&
           spw_pool_alias_get(&backing->stock.aliases, backing->granules[first].chunk,
                              backing->granules[first].order, &address) == SPW_OK) {
        first = spw_pool_backing_chunk_end(backing, first);
    }
    return first >= last;
}

bool spw_pool_away_take(struct spw_backing *backing, size_t first, size_t last)
{
    size_t end;

    if (!map_aliases(backing, first, last)) {
        return false;
    }
    end = spw_pool_old_chunks_unmap(backing, first, last);
    if (end < last) {
        spw_pool_old_chunks_put_back(backing, first, end);
        return false;
    }
    mark(backing, first, last, true);
    return true;
}

void spw_pool_away_put_back(struct spw_backing *backing, size_t first, size_t last)
{
    for (size_t end; first < last && backing->away > 0; first = end) {
        end = spw_pool_backing_chunk_end(backing, first);
        if (backing->granules[first].away) {
            mark(backing, first, end, false);
            spw_pool_old_chunks_put_back(backing, first, end);
        }
    }
}

void spw_pool_away_put_back_all(struct spw_backing *backing)
{
    spw_pool_away_put_back(backing, 0, (size_t)(backing->bytes >> backing->granule_shift));
}

bool spw_pool_away_has_all(const struct spw_backing *backing, size_t first, size_t last)
{
    while (first < last && backing->granules[first].away) {
        first++;
    }
    return first == last;
}

void spw_pool_away_forget(struct spw_backing *backing, size_t first, size_t last)
{
    mark(backing, first, last, false);
}

uint64_t spw_pool_away_source(struct spw_backing *backing, size_t granule)
{
    const struct spw_granule *chunk = &backing->granules[granule];
    uint64_t address = spw_pool_backing_address(backing, granule);

    if (chunk->away) {
        /* Cannot fail: the chunk has been mapped there since it was taken away. */
        (void)spw_pool_alias_get(&backing->stock.aliases, chunk->chunk, chunk->order, &address);
    }
    return address;
}
