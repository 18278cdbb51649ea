#include "submit/tensor_map.h"

#include "common/hash.h"
#include "submit/state.h"
#include "system/lock.h"

#include <stdatomic.h>
#include <string.h>

static uint16_t *chain_of(const uint64_t *words)
{
    uint64_t hash = spw_hash_bytes(words, SPW_TENSOR_MAP_WORDS * sizeof(*words));

    return &spw_submit.tensor_maps.first[hash % SPW_TENSOR_MAPS];
}

static struct spw_tensor_map *find(const uint64_t *words)
{
    uint16_t at = *chain_of(words);

    while (at != 0 &&
           memcmp(spw_submit.tensor_maps.maps[at - 1].words, words, SPW_TENSOR_MAP_BYTES) != 0) {
        at = spw_submit.tensor_maps.maps[at - 1].next;
    }
    return at == 0 ? NULL : &spw_submit.tensor_maps.maps[at - 1];
}

static void unlink_map(const struct spw_tensor_map *map)
{
    uint16_t *link = chain_of(map->words);

    while (&spw_submit.tensor_maps.maps[*link - 1] != map) {
        link = &spw_submit.tensor_maps.maps[*link - 1].next;
    }
    *link = map->next;
}

/* Replaces the oldest map of the ring, or fills a free entry. */
static struct spw_tensor_map *renew(const uint64_t *words)
{
    struct spw_tensor_map *map =
        &spw_submit.tensor_maps.maps[spw_submit.tensor_maps.added % SPW_TENSOR_MAPS];
    uint16_t *chain = chain_of(words);

    if (spw_submit.tensor_maps.added >= SPW_TENSOR_MAPS) {
        unlink_map(map);
    }
    memcpy(map->words, words, SPW_TENSOR_MAP_BYTES);
    map->next = *chain;
    *chain = (uint16_t)(spw_submit.tensor_maps.added % SPW_TENSOR_MAPS + 1);
    /* Does not overflow, and keeps the position in the ring and the fact that the ring is full. */
    spw_submit.tensor_maps.added = spw_submit.tensor_maps.added + 1 < 2 * SPW_TENSOR_MAPS
                                       ? spw_submit.tensor_maps.added + 1
                                       : SPW_TENSOR_MAPS;
    return map;
}

void spw_submit_tensor_map_add(const void *map, uint64_t address)
{
    uint64_t words[SPW_TENSOR_MAP_WORDS];
    struct spw_tensor_map *known;

    memcpy(words, map, sizeof(words));
    spw_lock(&spw_locks.tensor_maps);
    known = find(words);
    if (known == NULL) {
        known = renew(words);
    }
    known->address = address;
    spw_unlock(&spw_locks.tensor_maps);
    atomic_store_explicit(&spw_submit.tensor_maps.any, true, memory_order_release);
}

uint64_t spw_submit_tensor_map_find(const void *bytes)
{
    uint64_t words[SPW_TENSOR_MAP_WORDS], address;
    const struct spw_tensor_map *known;

    memcpy(words, bytes, sizeof(words));
    spw_lock(&spw_locks.tensor_maps);
    known = find(words);
    address = known == NULL ? 0 : known->address;
    spw_unlock(&spw_locks.tensor_maps);
    return address;
}

bool spw_submit_tensor_map_any(void)
{
    return atomic_load_explicit(&spw_submit.tensor_maps.any, memory_order_acquire);
}

void spw_submit_tensor_map_reset(void)
{
    spw_lock(&spw_locks.tensor_maps);
    memset(spw_submit.tensor_maps.maps, 0, sizeof(spw_submit.tensor_maps.maps));
    memset(spw_submit.tensor_maps.first, 0, sizeof(spw_submit.tensor_maps.first));
    spw_submit.tensor_maps.added = 0;
    atomic_store(&spw_submit.tensor_maps.any, false);
    spw_unlock(&spw_locks.tensor_maps);
}
