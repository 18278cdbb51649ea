#include "pool/extents/address_map.h"

#include "common/hash.h"

#include <stdlib.h>

enum { FIRST_CAPACITY_BITS = 10 };

struct spw_address_slot {
    uint64_t address; /* 0: the slot is empty */
    struct spw_extent *extent;
};

static size_t slot_of(const struct spw_address_map *map, uint64_t address)
{
    return (size_t)(spw_hash_word(address) >> map->shift);
}

static void put(struct spw_address_map *map, uint64_t address, struct spw_extent *extent)
{
    size_t i = slot_of(map, address);

    while (map->slots[i].address != 0) {
        i = (i + 1) & (map->capacity - 1);
    }
    map->slots[i] = (struct spw_address_slot){address, extent};
}

bool spw_pool_address_map_grow(struct spw_address_map *map)
{
    struct spw_address_map larger = *map;

    larger.capacity = map->capacity == 0 ? 1u << FIRST_CAPACITY_BITS : map->capacity * 2;
    larger.shift = 64 - (unsigned)__builtin_ctzll(larger.capacity);
    larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].address != 0) {
            put(&larger, map->slots[i].address, map->slots[i].extent);
        }
    }
    free(map->slots);
    *map = larger;
    return true;
}

void spw_pool_address_map_put(struct spw_address_map *map, struct spw_extent *extent)
{
    put(map, extent->address, extent);
    map->count++;
}

/* Empties a slot, and moves back the entries that it had displaced. */
static void close_gap(struct spw_address_map *map, size_t gap)
{
    size_t mask = map->capacity - 1;

    for (size_t i = (gap + 1) & mask; map->slots[i].address != 0; i = (i + 1) & mask) {
        size_t home = slot_of(map, map->slots[i].address);

        if (((i - home) & mask) >= ((i - gap) & mask)) {
            map->slots[gap] = map->slots[i];
            gap = i;
        }
    }
    map->slots[gap].address = 0;
}

/* Returns the slot that holds `address`, or an empty one. */
static size_t find(const struct spw_address_map *map, uint64_t address)
{
    size_t i = slot_of(map, address);

    while (map->slots[i].address != 0 && map->slots[i].address != address) {
        i = (i + 1) & (map->capacity - 1);
    }
    return i;
}

struct spw_extent *spw_pool_address_map_get(const struct spw_address_map *map, uint64_t address)
{
    size_t i;

    if (map->count == 0 || address == 0) {
        return NULL;
    }
    i = find(map, address);
    return map->slots[i].address != 0 ? map->slots[i].extent : NULL;
}

struct spw_extent *spw_pool_address_map_take(struct spw_address_map *map, uint64_t address)
{
    struct spw_extent *extent;
    size_t i;

    if (map->count == 0 || address == 0) {
        return NULL;
    }
    i = find(map, address);
    if (map->slots[i].address == 0) {
        return NULL;
    }
    extent = map->slots[i].extent;
    close_gap(map, i);
    map->count--;
    return extent;
}

void spw_pool_address_map_fini(struct spw_address_map *map)
{
    free(map->slots);
    *map = (struct spw_address_map){0};
}
