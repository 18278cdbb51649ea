/* Proofs: how a thread recognises that its stack is one that it has seen, without walking it.
 *
 * A proof lists words of memory and what they must hold for the stack to be the same: where each
 * frame keeps its return address and its caller's frame pointer, and for Python the links of the
 * frames and what tells their code objects apart. Words stand in the order of the walk, so that
 * each is known to be there still once those before it have held; by induction the whole stack is
 * what it was. Texts whose identity their address does not prove are compared byte by byte.
 *
 * Locking: none; a cache belongs to one thread. Memory comes from mmap, once per thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/table.h"

enum { SPW_PROOF_WORDS = 640, SPW_PROOF_TEXTS = 64 };

struct spw_proof_word {
    const uint64_t *at;
    uint64_t value;
};

struct spw_proof_text {
    const void *at;
    const char *text; /* lasting copy */
    size_t length;
};

struct spw_proof {
    uint64_t key; /* 0: the place is free */
    uint32_t site;
    uint16_t word_count;
    uint16_t text_count;
    bool broken; /* something did not fit or cannot be proved: not to be used */
    struct spw_proof_word words[SPW_PROOF_WORDS];
    struct spw_proof_text texts[SPW_PROOF_TEXTS];
};

/* Adds what must hold. The address is 8-byte aligned. */
static inline void spw_callsite_guard_add(struct spw_proof *proof, uintptr_t at, uint64_t value)
{
    if (proof->word_count < SPW_PROOF_WORDS && at % sizeof(uint64_t) == 0) {
        proof->words[proof->word_count++] = (struct spw_proof_word){(const uint64_t *)at, value};
    } else {
        proof->broken = true;
    }
}

/* The same for bytes, of which `text` is a copy that lasts; NULL or "" breaks the proof. */
static inline void spw_callsite_guard_add_text(struct spw_proof *proof, const void *at,
                                               const char *text, size_t length)
{
    if (proof->text_count < SPW_PROOF_TEXTS && text != NULL) {
        proof->texts[proof->text_count++] = (struct spw_proof_text){at, text, length};
    } else {
        proof->broken = true;
    }
}

/* Whether all still holds. */
bool spw_callsite_guard_holds(const struct spw_proof *proof);

/* ---- the proofs of one thread ---- */

enum { SPW_PROOF_SETS = 128, SPW_PROOF_WAYS = 4, SPW_PROOF_SEEN = 2048 };

struct spw_proofs {
    struct spw_proof proofs[SPW_PROOF_SETS][SPW_PROOF_WAYS];
    uint8_t next[SPW_PROOF_SETS];  /* the way to replace */
    uint32_t seen[SPW_PROOF_SEEN]; /* what was captured once and is worth a proof next time */
};

/* An empty cache; NULL without memory. */
struct spw_proofs *spw_callsite_stack_cache_create(void);
void spw_callsite_stack_cache_destroy(struct spw_proofs *proofs);

/* The site of a stack that was seen under this key (not 0) and is proved to be the same; 0 when
 * there is none. */
uint32_t spw_callsite_stack_cache_find(const struct spw_proofs *proofs, uint64_t key);

/* Whether a stack with this key and site comes for the second time: only then a proof pays. */
bool spw_callsite_stack_cache_again(struct spw_proofs *proofs, uint64_t key, uint32_t site);

/* An empty proof for the key, in the place of an older one. It is found from when the caller sets
 * its key. */
struct spw_proof *spw_callsite_stack_cache_place(struct spw_proofs *proofs, uint64_t key);
