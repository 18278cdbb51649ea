/* A hash map from addresses to addresses.
 *
 * Locking: none; the caller's lock guards a map. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct simrt_map_slot {
    const void *key; /* NULL: free */
    void *value;
};

/* All zeros is an empty map. */
struct simrt_map {
    struct simrt_map_slot *slots; /* owned */
    size_t capacity;              /* a power of two, or 0 */
    size_t count;
};

/* The value of a key, NULL when it has none. */
void *simrt_map_get(const struct simrt_map *map, const void *key);

/* Sets the value of a key, which is not NULL. Returns false when memory is short. */
bool simrt_map_put(struct simrt_map *map, const void *key, void *value);

/* Removes a key, if it is there. */
void simrt_map_remove(struct simrt_map *map, const void *key);

/* Removes every key whose value `matches`. */
void simrt_map_remove_if(struct simrt_map *map, bool (*matches)(const void *value, const void *arg),
                         const void *arg);
