#include "callsite/stack_cache.h"

#include "common/hash.h"

#include <string.h>
#include <sys/mman.h>

/* The guarded words are on this thread's stack, where AddressSanitizer may have put a red zone of a
 * present frame. */
__attribute__((no_sanitize("address"))) bool
spw_callsite_guard_holds(const struct spw_callsite_guard *guard)
{
    for (unsigned i = 0; i < guard->word_count; i++) {
        if (*guard->words[i].at != guard->words[i].value) {
            return false;
        }
    }
    for (unsigned i = 0; i < guard->text_count; i++) {
        const struct spw_callsite_guard_text *text = &guard->texts[i];

        if (memcmp(text->at, text->text, text->length) != 0) {
            return false;
        }
    }
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

uint32_t spw_callsite_stack_cache_find(const struct spw_callsite_stack_cache *cache, uint64_t key)
{
    const struct spw_callsite_guard *set = cache->guards[set_of(key)];

    for (int way = 0; way < SPW_STACK_CACHE_WAYS; way++) {
        if (set[way].key == key && spw_callsite_guard_holds(&set[way])) {
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
    guard->site = 0;
    guard->word_count = 0;
    guard->text_count = 0;
    guard->broken = false;
    return guard;
}
