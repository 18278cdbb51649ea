/* Recognises a stack that the thread has had before, without walking it.
 *
 * A guard lists words of memory, and the values that they must have if the stack is the same. For
 * native frames, these words are return addresses and saved frame pointers. For Python, they are
 * the links between frames, and the fields that identify the code objects of the frames. The words
 * are in the order of the walk. If all words before a word have their values, the memory of that
 * word is still valid. Strings that are not identified by an address are compared byte by byte.
 *
 * Locking: none; a cache belongs to one thread. Memory comes from mmap, once per thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/table.h"

enum { SPW_GUARD_WORDS = 640, SPW_GUARD_TEXTS = 64 };

struct spw_callsite_guard_word {
    const uint64_t *at;
    uint64_t value;
};

struct spw_callsite_guard_text {
    const void *at;
    const char *text; /* a copy that is never freed */
    size_t length;
};

struct spw_callsite_guard {
    uint64_t key; /* 0: unused */
    uint32_t site;
    uint16_t word_count;
    uint16_t text_count;
    bool broken; /* incomplete: must not be used */
    struct spw_callsite_guard_word words[SPW_GUARD_WORDS];
    struct spw_callsite_guard_text texts[SPW_GUARD_TEXTS];
};

/* Requires the word at `at` to be `value`. Marks the guard as broken if it is full, or if the
 * address is not 8-byte aligned. */
static inline void spw_callsite_guard_add(struct spw_callsite_guard *guard, uintptr_t at,
                                          uint64_t value)
{
    if (guard->word_count < SPW_GUARD_WORDS && at % sizeof(uint64_t) == 0) {
        guard->words[guard->word_count++] =
            (struct spw_callsite_guard_word){(const uint64_t *)at, value};
    } else {
        guard->broken = true;
    }
}

/* Requires the `length` bytes at `at` to equal `text`, a copy that is never freed. Marks the guard
 * as broken if it is full, or if `text` is NULL. */
static inline void spw_callsite_guard_add_text(struct spw_callsite_guard *guard, const void *at,
                                               const char *text, size_t length)
{
    if (guard->text_count < SPW_GUARD_TEXTS && text != NULL) {
        guard->texts[guard->text_count++] = (struct spw_callsite_guard_text){at, text, length};
    } else {
        guard->broken = true;
    }
}

/* Returns true if all words and texts have the required values. */
bool spw_callsite_guard_holds(const struct spw_callsite_guard *guard);

/* ---- the cache of one thread ---- */

enum { SPW_STACK_CACHE_SETS = 128, SPW_STACK_CACHE_WAYS = 4, SPW_STACK_CACHE_SEEN = 2048 };

struct spw_callsite_stack_cache {
    struct spw_callsite_guard guards[SPW_STACK_CACHE_SETS][SPW_STACK_CACHE_WAYS];
    uint8_t next[SPW_STACK_CACHE_SETS];  /* the way that is replaced next */
    uint32_t seen[SPW_STACK_CACHE_SEEN]; /* hashes of stacks that were captured once */
};

/* Creates an empty cache. Returns NULL if there is no memory. */
struct spw_callsite_stack_cache *spw_callsite_stack_cache_create(void);
void spw_callsite_stack_cache_destroy(struct spw_callsite_stack_cache *cache);

/* Removes all guards. */
void spw_callsite_stack_cache_clear(struct spw_callsite_stack_cache *cache);

/* Returns the site of a stack with this key (not 0) whose guard holds. Returns 0 if there is
 * none. */
uint32_t spw_callsite_stack_cache_find(const struct spw_callsite_stack_cache *cache, uint64_t key);

/* Returns true when a stack with this key and site is seen for the second time. Only then is a
 * guard made, because most stacks are seen once. */
bool spw_callsite_stack_cache_again(struct spw_callsite_stack_cache *cache, uint64_t key,
                                    uint32_t site);

/* Returns an empty guard in the set of `key`, which replaces an older one. A search finds it only
 * after the caller has set its `key`. */
struct spw_callsite_guard *spw_callsite_stack_cache_place(struct spw_callsite_stack_cache *cache,
                                                          uint64_t key);
