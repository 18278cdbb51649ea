#include "sim/runtime/map.h"

#include <stdint.h>
#include <stdlib.h>

enum { MIN_CAPACITY = 64 };

/* Linear probing; the multiplication spreads addresses, whose low bits are alike. */
static size_t home_of(const struct simrt_map *map, const void *key)
{
    uint64_t mixed = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;

    return (size_t)(mixed >> 32) & (map->capacity - 1);
}

/* The slot that holds the key, or the free one where it belongs. */
static size_t slot_of(const struct simrt_map *map, const void *key)
{
    size_t i = home_of(map, key);

    while (map->slots[i].key != NULL && map->slots[i].key != key) {
        i = (i + 1) & (map->capacity - 1);
    }
    return i;
}

void *simrt_map_get(const struct simrt_map *map, const void *key)
{
    if (map->capacity == 0 || key == NULL) {
        return NULL;
    }
    return map->slots[slot_of(map, key)].value;
}

static bool grow(struct simrt_map *map)
{
    struct simrt_map larger = {.capacity = map->capacity > 0 ? 2 * map->capacity : MIN_CAPACITY,
                               .count = map->count};

    larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].key != NULL) {
            larger.slots[slot_of(&larger, map->slots[i].key)] = map->slots[i];
        }
    }
    free(map->slots);
    *map = larger;
    return true;
}

bool simrt_map_put(struct simrt_map *map, const void *key, void *value)
{
    if (map->count >= map->capacity / 2 && !grow(map)) {
        return false;
    }
    struct simrt_map_slot *slot = &map->slots[slot_of(map, key)];
    if (slot->key == NULL) {
        map->count++;
    }
    *slot = (struct simrt_map_slot){key, value};
    return true;
}

/* Frees a slot and moves those behind it up that could not be found any more. */
static void free_slot(struct simrt_map *map, size_t hole)
{
    size_t mask = map->capacity - 1;

    for (size_t i = (hole + 1) & mask; map->slots[i].key != NULL; i = (i + 1) & mask) {
        size_t distance = (i - home_of(map, map->slots[i].key)) & mask;
        if (distance >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (struct simrt_map_slot){NULL, NULL};
    map->count--;
}

void simrt_map_remove(struct simrt_map *map, const void *key)
{
    if (map->capacity == 0 || key == NULL) {
        return;
    }
    size_t i = slot_of(map, key);
    if (map->slots[i].key != NULL) {
        free_slot(map, i);
    }
}

void simrt_map_remove_if(struct simrt_map *map, bool (*matches)(const void *value, const void *arg),
                         const void *arg)
{
    size_t i = 0;

    while (i < map->capacity) {
        if (map->slots[i].key != NULL && matches(map->slots[i].value, arg)) {
            free_slot(map, i); /* another may have moved here: look again */
        } else {
            i++;
        }
    }
}
