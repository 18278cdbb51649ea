/* Memory for objects that are too large for the stack. A program may give its threads stacks of 16
 * KiB, and spillway must run on them (CONTRIBUTING.md has the bound).
 *
 * Each object gets a mapping of its own, so this is for rare paths only. No lock, no malloc. */
#pragma once

#include <stddef.h>
#include <sys/mman.h>

/* The header of each mapping. It keeps the memory behind it aligned. */
struct spw_room_size {
    _Alignas(16) size_t mapped;
};

/* Frees the memory. Takes NULL. */
static inline void spw_room_give(void *room)
{
    if (room != NULL) {
        struct spw_room_size *size = (struct spw_room_size *)room - 1;

        (void)munmap(size, size->mapped);
    }
}

/* Returns `bytes` zeroed bytes. If the process has no memory, returns NULL and sets errno. */
static inline void *spw_room_take(size_t bytes)
{
    size_t mapped = sizeof(struct spw_room_size) + bytes;
    struct spw_room_size *size =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (size == MAP_FAILED) {
        return NULL;
    }
    size->mapped = mapped;
    return size + 1;
}

/* Follows the type of a pointer variable. The memory is freed at the end of the variable's scope.
 *
 *     char SPW_ROOM *path = spw_room_take(PATH_MAX); */
static inline void spw_room_leave(void *variable)
{
    spw_room_give(*(void **)variable);
}

#define SPW_ROOM __attribute__((cleanup(spw_room_leave)))
