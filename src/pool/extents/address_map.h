/* A hash map from block address to extent.
 *
 * The map uses open addressing with backward-shift deletion. There are no tombstones, so look-ups
 * do not become slower after many allocations and frees. Not thread-safe: the caller holds the
 * pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/extents/extent.h"

struct spw_address_map {
    struct spw_address_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
    unsigned shift;
};

/* The slow half of spw_pool_address_map_reserve. */
bool spw_pool_address_map_grow(struct spw_address_map *map);

/* Makes room for one more entry. Returns false if the process has no memory. */
static inline bool spw_pool_address_map_reserve(struct spw_address_map *map)
{
    return (map->count + 1) * 2 <= map->capacity || spw_pool_address_map_grow(map);
}

/* Adds an extent under its address. Must follow a successful reserve. */
void spw_pool_address_map_put(struct spw_address_map *map, struct spw_extent *extent);

/* Returns the extent at exactly `address`; NULL if there is none. */
struct spw_extent *spw_pool_address_map_get(const struct spw_address_map *map, uint64_t address);

/* Removes and returns the extent at exactly `address`; NULL if there is none. */
struct spw_extent *spw_pool_address_map_take(struct spw_address_map *map, uint64_t address);

/* Frees the table, not the extents. */
void spw_pool_address_map_fini(struct spw_address_map *map);
