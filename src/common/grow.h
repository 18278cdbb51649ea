/* Arrays that grow. If there is no memory, they stay unchanged, and false is returned. No
 * locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `count` elements in *array, which is NULL at first. */
#define SPW_RESIZE(array, count) spw_resize(array, count, sizeof(**(array)))

/* Makes room for at least `count` elements, by doubling *capacity, the current room. */
#define SPW_GROW(array, capacity, count) spw_grow(array, capacity, count, sizeof(**(array)))

/* Resizes an array. `array` is the address of a pointer to elements of `bytes` each. */
static inline bool spw_resize(void *array, size_t count, size_t bytes)
{
    void *elements;

    memcpy(&elements, array, sizeof(elements));
    elements = realloc(elements, count * bytes);
    if (elements != NULL) {
        memcpy(array, &elements, sizeof(elements));
    }
    return elements != NULL;
}

static inline bool spw_grow(void *array, size_t *capacity, size_t count, size_t bytes)
{
    enum { FIRST = 64 };
    size_t room = *capacity == 0 ? FIRST : *capacity;

    while (room < count) {
        room *= 2;
    }
    if (room != *capacity) {
        if (!spw_resize(array, room, bytes)) {
            return false;
        }
        *capacity = room;
    }
    return true;
}
