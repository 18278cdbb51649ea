#include "callsite/stack_cache.h"

#include "common/hash.h"

#include <string.h>
#include <sys/mman.h>

bool spw_callsite_guard_holds(const struct spw_proof *proof)
{
    for (unsigned i = 0; i < proof->word_count; i++) {
        if (*proof->words[i].at != proof->words[i].value) {
            return false;
        }
    }
    for (unsigned i = 0; i < proof->text_count; i++) {
        const struct spw_proof_text *text = &proof->texts[i];

        if (memcmp(text->at, text->text, text->length) != 0) {
            return false;
        }
    }
    return true;
}

struct spw_proofs *spw_callsite_stack_cache_create(void)
{
    void *address = mmap(NULL, sizeof(struct spw_proofs), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return address == MAP_FAILED ? NULL : address;
}

void spw_callsite_stack_cache_destroy(struct spw_proofs *proofs)
{
    if (proofs != NULL) {
        (void)munmap(proofs, sizeof(*proofs));
    }
}

static size_t set_of(uint64_t key)
{
    return key >> 32 & (SPW_PROOF_SETS - 1);
}

uint32_t spw_callsite_stack_cache_find(const struct spw_proofs *proofs, uint64_t key)
{
    const struct spw_proof *set = proofs->proofs[set_of(key)];

    for (int way = 0; way < SPW_PROOF_WAYS; way++) {
        if (set[way].key == key && spw_callsite_guard_holds(&set[way])) {
            return set[way].site;
        }
    }
    return 0;
}

bool spw_callsite_stack_cache_again(struct spw_proofs *proofs, uint64_t key, uint32_t site)
{
    uint64_t hash = spw_hash_mix(key, site);
    uint32_t *seen = &proofs->seen[hash & (SPW_PROOF_SEEN - 1)];
    uint32_t mark = (uint32_t)(hash >> 32) | 1;

    if (*seen == mark) {
        *seen = 0;
        return true;
    }
    *seen = mark;
    return false;
}

struct spw_proof *spw_callsite_stack_cache_place(struct spw_proofs *proofs, uint64_t key)
{
    size_t set = set_of(key);
    struct spw_proof *proof = &proofs->proofs[set][proofs->next[set]];

    proofs->next[set] = (uint8_t)((proofs->next[set] + 1) % SPW_PROOF_WAYS);
    proof->key = 0;
    proof->site = 0;
    proof->word_count = 0;
    proof->text_count = 0;
    proof->broken = false;
    return proof;
}
