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
