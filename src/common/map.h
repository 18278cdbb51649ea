/* A hash map from 64-bit keys to pointers, for tables that are not on the hot path: streams,
 * handles, addresses.
 *
 * Locking: none; the owner's lock covers it. A map of zero bytes is empty and ready for use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spw_map_slot {
    uint64_t key;
    void *value; /* NULL: the slot is unused */
};

struct spw_map {
    struct spw_map_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Returns the value of `key`; NULL if there is none. */
void *spw_map_get(const struct spw_map *map, uint64_t key);

/* Sets the value (not NULL) of `key`, and replaces an older one. Returns false if there is no
 * memory. */
bool spw_map_put(struct spw_map *map, uint64_t key, void *value);

/* Removes `key` and returns its value; NULL if the key is not in the map. */
void *spw_map_take(struct spw_map *map, uint64_t key);

/* Iterates: returns the next value and advances *cursor, which is 0 at first. Returns NULL at the
 * end. The map must not change between the calls. */
void *spw_map_next(const struct spw_map *map, size_t *cursor);

/* Removes every key for whose value `matches` returns true. `matches` gets `arg`. It must not use
 * the map. */
void spw_map_remove_if(struct spw_map *map, bool (*matches)(const void *value, const void *arg),
                       const void *arg);

/* Frees every value with free() and leaves the map empty. */
void spw_map_clear(struct spw_map *map);
