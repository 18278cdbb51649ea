/* Hash functions for the tables of all layers. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the hash of one word. The multiplication spreads words that differ only in their low bits
 * over the high bits of the hash. */
static inline uint64_t spw_hash_word(uint64_t word)
{
    return word * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t spw_hash_mix(uint64_t hash, uint64_t word)
{
    hash = spw_hash_word(hash ^ word);
    return hash ^ hash >> 29;
}

/* Returns the hash of `length` bytes. */
static inline uint64_t spw_hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t hash = length;
    uint64_t word;

    for (; length >= sizeof(word); length -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = spw_hash_mix(hash, word);
    }
    word = 0;
    memcpy(&word, at, length);
    return spw_hash_mix(hash, word);
}

/* Returns the hash of a large block, several times as fast as spw_hash_bytes: four hashes side by
 * side do not wait for each other. */
static inline uint64_t spw_hash_large(const void *bytes, size_t length)
{
    enum { SIDES = 4, STEP = SIDES * sizeof(uint64_t) };
    const unsigned char *at = bytes;
    uint64_t sides[SIDES] = {0, 1, 2, 3}, words[SIDES], hash;

    for (; length >= STEP; length -= STEP, at += STEP) {
        memcpy(words, at, STEP);
        for (int i = 0; i < SIDES; i++) {
            sides[i] = spw_hash_mix(sides[i], words[i]);
        }
    }
    hash = spw_hash_bytes(at, length);
    for (int i = 0; i < SIDES; i++) {
        hash = spw_hash_mix(hash, sides[i]);
    }
    return hash;
}
