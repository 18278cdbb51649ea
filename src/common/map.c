#include "common/map.h"

#include "common/hash.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

static size_t home_of(const struct spw_map *map, uint64_t key)
{
    return (size_t)(spw_hash_word(key) >> 32) & (map->capacity - 1);
}

/* The slot of `key`, or the free slot for it. There is always a free slot. */
static size_t find(const struct spw_map *map, uint64_t key)
{
    size_t slot = home_of(map, key);

    while (map->slots[slot].value != NULL && map->slots[slot].key != key) {
        slot = (slot + 1) & (map->capacity - 1);
    }
    return slot;
}

static bool grow(struct spw_map *map)
{
    struct spw_map larger = {.capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY};

    larger.slots = calloc(larger.capacity, sizeof(larger.slots[0]));
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value != NULL) {
            larger.slots[find(&larger, map->slots[i].key)] = map->slots[i];
        }
    }
    larger.count = map->count;
    free(map->slots);
    *map = larger;
    return true;
}

void *spw_map_get(const struct spw_map *map, uint64_t key)
{
    return map->count == 0 ? NULL : map->slots[find(map, key)].value;
}

bool spw_map_put(struct spw_map *map, uint64_t key, void *value)
{
    size_t slot;

    if ((map->count + 1) * 2 > map->capacity && !grow(map)) {
        return false;
    }
    slot = find(map, key);
    map->count += map->slots[slot].value == NULL;
    map->slots[slot] = (struct spw_map_slot){key, value};
    return true;
}

/* Empties a slot. Fills the hole with a later entry that a search would no longer reach, and so
 * on. */
static void free_slot(struct spw_map *map, size_t hole)
{
    size_t mask = map->capacity - 1;

    for (size_t next = (hole + 1) & mask; map->slots[next].value != NULL;
         next = (next + 1) & mask) {
        size_t home = home_of(map, map->slots[next].key);

        if (((next - home) & mask) >= ((next - hole) & mask)) {
            map->slots[hole] = map->slots[next];
            hole = next;
        }
    }
    map->slots[hole].value = NULL;
    map->count--;
}

void *spw_map_take(struct spw_map *map, uint64_t key)
{
    size_t slot;
    void *value;

    if (map->count == 0) {
        return NULL;
    }
    slot = find(map, key);
    value = map->slots[slot].value;
    if (value != NULL) {
        free_slot(map, slot);
    }
    return value;
}

void spw_map_remove_if(struct spw_map *map, bool (*matches)(const void *value, const void *arg),
                       const void *arg)
{
    size_t slot = 0;

    while (slot < map->capacity) {
        if (map->slots[slot].value != NULL && matches(map->slots[slot].value, arg)) {
            free_slot(map, slot); /* another entry may have moved here: look again */
        } else {
            slot++;
        }
    }
}

void *spw_map_next(const struct spw_map *map, size_t *cursor)
{
    while (*cursor < map->capacity) {
        void *value = map->slots[(*cursor)++].value;

        if (value != NULL) {
            return value;
        }
    }
    return NULL;
}

void spw_map_clear(struct spw_map *map)
{
    for (size_t i = 0; i < map->capacity; i++) {
        free(map->slots[i].value);
    }
    free(map->slots);
    *map = (struct spw_map){0};
}
