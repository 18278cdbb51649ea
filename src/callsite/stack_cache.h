/* Recognises a stack that the thread has had before, without walking it.
 *
 * A guard lists words of memory, and the values that they must have if the stack is the same. For
 * native frames, these words are return addresses and saved frame pointers. For Python, they are
 * the links between frames, and the fields that identify the code objects of the frames. The words
 * are in the order of the walk. If all words before a word have their values, the memory of that
 * word is still valid. Strings that are not identified by an address are compared byte by byte.
 * Fields and strings of code objects are compared only if a code object was freed since they were
 * compared last (code_frees.h).
 *
 * Locking: none; a cache belongs to one thread. Memory comes from mmap, once per thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/table.h"

enum { SPW_GUARD_WORDS = 512, SPW_GUARD_TEXTS = 64 };

struct spw_callsite_guard_word {
    const uint64_t *at;
    uint64_t value;
};

struct spw_callsite_guard_text {
    const void *at;
    const char *text; /* a copy that is never freed */
    size_t length;
};

struct spw_callsite_guard_words {
    unsigned count;
    struct spw_callsite_guard_word at[SPW_GUARD_WORDS + 1]; /* the word after the last one never has
                                                               its value */
};

/* The facts of a capture that a guard's words do not show. */
struct spw_callsite_place {
    uint64_t call;   /* the function that the program called, and the thread's tag */
    uintptr_t frame; /* address of the innermost frame */
    uintptr_t state; /* the thread's state in Python; 0: none */
    uint64_t frees;  /* spw_callsite_code_frees */
};

struct spw_callsite_guard {
    uint64_t key;                    /* 0: unused */
    struct spw_callsite_guard *next; /* held at the capture after this one; NULL: unknown */
    struct spw_callsite_place place;
    uint32_t site;
    unsigned text_count;
    bool broken; /* incomplete: must not be used */
    struct spw_callsite_guard_text texts[SPW_GUARD_TEXTS];
    struct spw_callsite_guard_words stack;
    struct spw_callsite_guard_words code; /* in code objects, with the texts */
};

/* Requires the word at `at`, on the stack or in a code object, to be `value`. Marks the guard as
 * broken if it is full, or if the address is not 8-byte aligned. */
void spw_callsite_guard_add(struct spw_callsite_guard *guard, uintptr_t at, uint64_t value);
void spw_callsite_guard_add_code(struct spw_callsite_guard *guard, uintptr_t at, uint64_t value);

/* Requires the `length` bytes at `at` to equal `text`, a copy that is never freed. Marks the guard
 * as broken if it is full, or if `text` is NULL. */
void spw_callsite_guard_add_text(struct spw_callsite_guard *guard, const void *at, const char *text,
                                 size_t length);

/* ---- the cache of one thread ---- */

enum { SPW_STACK_CACHE_SETS = 128, SPW_STACK_CACHE_WAYS = 4, SPW_STACK_CACHE_SEEN = 2048 };

struct spw_callsite_stack_cache {
    struct spw_callsite_guard *last; /* held at the last capture; NULL: none */
    struct spw_callsite_guard guards[SPW_STACK_CACHE_SETS][SPW_STACK_CACHE_WAYS];
    uint8_t next[SPW_STACK_CACHE_SETS];  /* the way that is replaced next */
    uint32_t seen[SPW_STACK_CACHE_SEEN]; /* hashes of stacks that were captured once */
};

/* Creates an empty cache. Returns NULL if there is no memory. */
struct spw_callsite_stack_cache *spw_callsite_stack_cache_create(void);
void spw_callsite_stack_cache_destroy(struct spw_callsite_stack_cache *cache);

/* Removes all guards. */
void spw_callsite_stack_cache_clear(struct spw_callsite_stack_cache *cache);

/* Returns the site of the stack that last followed the current one, if the guard of that stack is
 * valid at this place. Returns 0 otherwise. Programs repeat themselves, so this usually saves the
 * calculation of a key. */
uint32_t spw_callsite_stack_cache_expect(struct spw_callsite_stack_cache *cache,
                                         const struct spw_callsite_place *place);

/* Returns the site of a stack with this key (not 0) whose guard holds. Returns 0 if there is
 * none. */
uint32_t spw_callsite_stack_cache_find(struct spw_callsite_stack_cache *cache, uint64_t key,
                                       const struct spw_callsite_place *place);

/* Returns true when a stack with this key and site is seen for the second time. Only then is a
 * guard made, because most stacks are seen once. */
bool spw_callsite_stack_cache_again(struct spw_callsite_stack_cache *cache, uint64_t key,
                                    uint32_t site);

/* Returns an empty guard in the set of `key`, which replaces an older one. A search finds it only
 * after the caller has set its `key`. */
struct spw_callsite_guard *spw_callsite_stack_cache_place(struct spw_callsite_stack_cache *cache,
                                                          uint64_t key);
