#include "callsite/stack_cache.h"

#include "common/hash.h"
#include "common/likely.h"

#include <string.h>
#include <sys/mman.h>

/* A word that never has its value. */
static const uint64_t zero;
static const struct spw_callsite_guard_word end = {&zero, 1};

static bool add(struct spw_callsite_guard_words *words, uintptr_t at, uint64_t value)
{
    if (words->count >= SPW_GUARD_WORDS || at % sizeof(uint64_t) != 0) {
        return false;
    }
    words->at[words->count++] = (struct spw_callsite_guard_word){(const uint64_t *)at, value};
    words->at[words->count] = end;
    return true;
}

void spw_callsite_guard_add(struct spw_callsite_guard *guard, uintptr_t at, uint64_t value)
{
    guard->broken |= !add(&guard->stack, at, value);
}

void spw_callsite_guard_add_code(struct spw_callsite_guard *guard, uintptr_t at, uint64_t value)
{
    guard->broken |= !add(&guard->code, at, value);
}

void spw_callsite_guard_add_text(struct spw_callsite_guard *guard, const void *at, const char *text,
                                 size_t length)
{
    if (guard->text_count < SPW_GUARD_TEXTS && text != NULL) {
        guard->texts[guard->text_count++] = (struct spw_callsite_guard_text){at, text, length};
    } else {
        guard->broken = true;
    }
}

/* The guarded words are on this thread's stack, where AddressSanitizer may have put a red zone of a
 * present frame. */
static __attribute__((no_sanitize("address"))) inline bool
words_hold(const struct spw_callsite_guard_words *words)
{
    const struct spw_callsite_guard_word *word = words->at;

    while (*word->at == word->value) {
        word++;
    }
    return word == &words->at[words->count];
}

static __attribute__((noinline)) bool code_holds(const struct spw_callsite_guard *guard)
{
    if (!words_hold(&guard->code)) {
        return false;
    }
    for (unsigned i = 0; i < guard->text_count; i++) {
        const struct spw_callsite_guard_text *text = &guard->texts[i];

        if (memcmp(text->at, text->text, text->length) != 0) {
            return false;
        }
    }
    return true;
}

/* The stack comes first: the code objects of its frames exist. */
static bool holds(struct spw_callsite_guard *guard, const struct spw_callsite_place *place)
{
    if (!words_hold(&guard->stack)) {
        return false;
    }
    if (SPW_LIKELY(guard->place.frees == place->frees && place->frees != 0)) {
        return true;
    }
    if (!code_holds(guard)) {
        return false;
    }
    guard->place.frees = place->frees;
    return true;
}

struct spw_callsite_stack_cache *spw_callsite_stack_cache_create(void)
{
    void *address = mmap(NULL, sizeof(struct spw_callsite_stack_cache), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return address == MAP_FAILED ? NULL : address;
}

void spw_callsite_stack_cache_destroy(struct spw_callsite_stack_cache *cache)
{
    if (cache != NULL) {
        (void)munmap(cache, sizeof(*cache));
    }
}

static size_t set_of(uint64_t key)
{
    return key >> 32 & (SPW_STACK_CACHE_SETS - 1);
}

void spw_callsite_stack_cache_clear(struct spw_callsite_stack_cache *cache)
{
    for (size_t i = 0; i < SPW_STACK_CACHE_SETS; i++) {
        for (size_t way = 0; way < SPW_STACK_CACHE_WAYS; way++) {
            if (cache->guards[i][way].key != 0) { /* most pages were never touched */
                cache->guards[i][way].key = 0;
            }
        }
    }
}

uint32_t spw_callsite_stack_cache_expect(struct spw_callsite_stack_cache *cache,
                                         const struct spw_callsite_place *place)
{
    struct spw_callsite_guard *guard = cache->last != NULL ? cache->last->next : NULL;

    if (guard == NULL || guard->key == 0 || guard->place.call != place->call ||
        guard->place.frame != place->frame || guard->place.state != place->state ||
        !holds(guard, place)) {
        return 0;
    }
    cache->last = guard;
    return guard->site;
}

uint32_t spw_callsite_stack_cache_find(struct spw_callsite_stack_cache *cache, uint64_t key,
                                       const struct spw_callsite_place *place)
{
    struct spw_callsite_guard *set = cache->guards[set_of(key)];

    for (int way = 0; way < SPW_STACK_CACHE_WAYS; way++) {
        if (set[way].key == key && holds(&set[way], place)) {
            if (cache->last != NULL) {
                cache->last->next = &set[way];
            }
            cache->last = &set[way];
            return set[way].site;
        }
    }
    return 0;
}

bool spw_callsite_stack_cache_again(struct spw_callsite_stack_cache *cache, uint64_t key,
                                    uint32_t site)
{
    uint64_t hash = spw_hash_mix(key, site);
    uint32_t *seen = &cache->seen[hash & (SPW_STACK_CACHE_SEEN - 1)];
    uint32_t mark = (uint32_t)(hash >> 32) | 1;

    if (*seen == mark) {
        *seen = 0;
        return true;
    }
    *seen = mark;
    return false;
}

struct spw_callsite_guard *spw_callsite_stack_cache_place(struct spw_callsite_stack_cache *cache,
                                                          uint64_t key)
{
    size_t set = set_of(key);
    struct spw_callsite_guard *guard = &cache->guards[set][cache->next[set]];

    cache->next[set] = (uint8_t)((cache->next[set] + 1) % SPW_STACK_CACHE_WAYS);
    guard->key = 0;
    guard->next = NULL;
    guard->site = 0;
    guard->stack.count = guard->code.count = 0;
    guard->stack.at[0] = guard->code.at[0] = end;
    guard->text_count = 0;
    guard->broken = false;
    return guard;
}
