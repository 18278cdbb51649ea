#include "migrate/block_index.h"

#include <stdlib.h>
#include <string.h>

bool spw_migrate_block_index_init(struct spw_block_index *places, uint64_t base, uint64_t bytes,
                                  uint64_t granule_bytes, uint32_t most)
{
    size_t granules = (size_t)(bytes / granule_bytes) + 1;

    *places = (struct spw_block_index){.base = base,
                                       .bytes = bytes,
                                       .granule_shift = (unsigned)__builtin_ctzll(granule_bytes),
                                       .covers = calloc(granules, sizeof(*places->covers)),
                                       .begins = calloc(granules, sizeof(*places->begins)),
                                       .blocks = calloc(most, sizeof(*places->blocks)),
                                       .most = most};
    if (places->covers == NULL || places->begins == NULL || places->blocks == NULL) {
        spw_migrate_block_index_fini(places);
        return false;
    }
    return true;
}

void spw_migrate_block_index_fini(struct spw_block_index *places)
{
    free(places->covers);
    free(places->begins);
    free(places->blocks);
    memset(places, 0, sizeof(*places));
}

/* Names `block` as the one that covers the granules behind the one it begins in. */
static void cover(struct spw_block_index *places, const struct spw_place *place, uint32_t block)
{
    size_t last = spw_migrate_block_index_granule(places, place->end - 1);

    for (size_t g = spw_migrate_block_index_granule(places, place->address) + 1; g <= last; g++) {
        places->covers[g] = block;
    }
}

void spw_migrate_block_index_put(struct spw_block_index *places, uint32_t block, uint64_t address,
                                 uint64_t bytes)
{
    size_t granule = spw_migrate_block_index_granule(places, address);

    places->blocks[block] = (struct spw_place){address, address + bytes, places->begins[granule]};
    places->begins[granule] = block;
    cover(places, &places->blocks[block], block);
}

void spw_migrate_block_index_remove(struct spw_block_index *places, uint32_t block)
{
    struct spw_place *place = &places->blocks[block];
    uint32_t *link = &places->begins[spw_migrate_block_index_granule(places, place->address)];

    while (*link != block) {
        link = &places->blocks[*link].beside;
    }
    *link = place->beside;
    cover(places, place, 0);
    *place = (struct spw_place){0};
}

uint32_t spw_migrate_block_index_touch(const struct spw_block_index *places, uint64_t address,
                                       uint64_t end)
{
    size_t first = spw_migrate_block_index_granule(places, address),
           last = spw_migrate_block_index_granule(places, end - 1);

    for (size_t g = first; g <= last; g++) {
        uint32_t block = places->covers[g];

        if (block != 0 && places->blocks[block].end > address) {
            return block;
        }
        for (block = places->begins[g]; block != 0; block = places->blocks[block].beside) {
            if (places->blocks[block].address < end && places->blocks[block].end > address) {
                return block;
            }
        }
    }
    return 0;
}

uint32_t spw_migrate_block_index_find(const struct spw_block_index *places, uint64_t address)
{
    return spw_migrate_block_index_touch(places, address, address + 1);
}
