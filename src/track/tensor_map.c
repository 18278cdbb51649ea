#include "track/tensor_map.h"

#include "common/lock.h"

#include <stdatomic.h>
#include <string.h>

enum { MAPS = 4096, WORDS = SPW_TENSOR_MAP_BYTES / sizeof(uint64_t) };

struct map {
    uint64_t words[WORDS];
    uint64_t address;
    uint16_t next; /* of the same hash, with 1 added; 0: none */
};

/* A ring, the oldest goes first, and its members by their hashes. */
static struct {
    _Atomic bool any;
    uint32_t added; /* in all */
    struct map maps[MAPS];
    uint16_t first[MAPS]; /* by hash, as above */
} table;

static uint16_t *chain_of(const uint64_t *words)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < WORDS; i++) {
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return &table.first[hash % MAPS];
}

static struct map *find(const uint64_t *words)
{
    uint16_t at = *chain_of(words);

    while (at != 0 && memcmp(table.maps[at - 1].words, words, SPW_TENSOR_MAP_BYTES) != 0) {
        at = table.maps[at - 1].next;
    }
    return at == 0 ? NULL : &table.maps[at - 1];
}

static void unlink_map(const struct map *map)
{
    uint16_t *link = chain_of(map->words);

    while (&table.maps[*link - 1] != map) {
        link = &table.maps[*link - 1].next;
    }
    *link = map->next;
}

/* The oldest one's place, for new content. */
static struct map *renew(const uint64_t *words)
{
    struct map *map = &table.maps[table.added % MAPS];
    uint16_t *chain = chain_of(words);

    if (table.added >= MAPS) {
        unlink_map(map);
    }
    memcpy(map->words, words, SPW_TENSOR_MAP_BYTES);
    map->next = *chain;
    *chain = (uint16_t)(table.added % MAPS + 1);
    /* Stays what tells a full ring and the place in it. */
    table.added = table.added + 1 < 2 * MAPS ? table.added + 1 : MAPS;
    return map;
}

void spw_track_tensor_map_add(const void *map, uint64_t address)
{
    uint64_t words[WORDS];
    struct map *known;

    memcpy(words, map, sizeof(words));
    spw_lock(&spw_locks.tensor_maps);
    known = find(words);
    if (known == NULL) {
        known = renew(words);
    }
    known->address = address;
    spw_unlock(&spw_locks.tensor_maps);
    atomic_store_explicit(&table.any, true, memory_order_release);
}

uint64_t spw_track_tensor_map_find(const void *bytes)
{
    uint64_t words[WORDS], address;
    const struct map *known;

    memcpy(words, bytes, sizeof(words));
    spw_lock(&spw_locks.tensor_maps);
    known = find(words);
    address = known == NULL ? 0 : known->address;
    spw_unlock(&spw_locks.tensor_maps);
    return address;
}

bool spw_track_tensor_map_any(void)
{
    return atomic_load_explicit(&table.any, memory_order_acquire);
}

void spw_track_tensor_map_reset(void)
{
    spw_lock(&spw_locks.tensor_maps);
    memset(table.maps, 0, sizeof(table.maps));
    memset(table.first, 0, sizeof(table.first));
    table.added = 0;
    atomic_store(&table.any, false);
    spw_unlock(&spw_locks.tensor_maps);
}
