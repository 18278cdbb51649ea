#include "migrate/learn/block_index.h"

#include <stdlib.h>
#include <string.h>

bool spw_migrate_block_index_init(struct spw_block_index *index, uint64_t base, uint64_t bytes,
                                  uint64_t granule_bytes, uint32_t most)
{
    size_t granules = (size_t)(bytes / granule_bytes) + 1;

    *index = (struct spw_block_index){.base = base,
                                      .bytes = bytes,
                                      .granule_shift = (unsigned)__builtin_ctzll(granule_bytes),
                                      .covers = calloc(granules, sizeof(*index->covers)),
                                      .begins = calloc(granules, sizeof(*index->begins)),
                                      .blocks = calloc(most, sizeof(*index->blocks)),
                                      .most = most};
    if (index->covers == NULL || index->begins == NULL || index->blocks == NULL) {
        spw_migrate_block_index_fini(index);
        return false;
    }
    return true;
}

void spw_migrate_block_index_fini(struct spw_block_index *index)
{
    free(index->covers);
    free(index->begins);
    free(index->blocks);
    memset(index, 0, sizeof(*index));
}

/* Enters `block` as the cover of all granules whose first byte is in the range. */
static void cover(struct spw_block_index *index, const struct spw_block_range *range,
                  uint32_t block)
{
    size_t last = spw_migrate_block_index_granule(index, range->end - 1);

    for (size_t g = spw_migrate_block_index_granule(index, range->address) + 1; g <= last; g++) {
        index->covers[g] = block;
    }
}

void spw_migrate_block_index_put(struct spw_block_index *index, uint32_t block, uint64_t address,
                                 uint64_t bytes)
{
    size_t granule = spw_migrate_block_index_granule(index, address);

    index->blocks[block] =
        (struct spw_block_range){address, address + bytes, index->begins[granule]};
    index->begins[granule] = block;
    cover(index, &index->blocks[block], block);
}

void spw_migrate_block_index_remove(struct spw_block_index *index, uint32_t block)
{
    const struct spw_block_range *range = &index->blocks[block];
    uint32_t *link = &index->begins[spw_migrate_block_index_granule(index, range->address)];

    while (*link != block) {
        link = &index->blocks[*link].next_in_granule;
    }
    *link = range->next_in_granule;
    cover(index, range, 0);
}

uint32_t spw_migrate_block_index_overlap(const struct spw_block_index *index, uint64_t address,
                                         uint64_t end)
{
    size_t first = spw_migrate_block_index_granule(index, address),
           last = spw_migrate_block_index_granule(index, end);

    for (size_t g = first; g <= last; g++) {
        uint32_t block = index->covers[g];

        if (index->blocks[block].end > address) { /* never for block 0, whose end is 0 */
            return block;
        }
        for (block = index->begins[g]; block != 0; block = index->blocks[block].next_in_granule) {
            if (index->blocks[block].address < end && index->blocks[block].end > address) {
                return block;
            }
        }
    }
    return 0;
}

uint32_t spw_migrate_block_index_find(const struct spw_block_index *index, uint64_t address)
{
    return spw_migrate_block_index_overlap(index, address, address + 1);
}
