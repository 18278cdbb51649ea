/* Chains of calls that end in `leaf`; each returns what it returned. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef uint32_t chain_leaf(void);

/* `depth` equal frames below one of two functions that differ in nothing but their place. */
uint32_t chain_one(int depth, chain_leaf *leaf);
uint32_t chain_two(int depth, chain_leaf *leaf);

/* A frame with `outer` bytes of room, and in it one with `inner`; two alike. */
uint32_t chain_sized(size_t outer, size_t inner, chain_leaf *leaf);
uint32_t chain_sized_too(size_t outer, size_t inner, chain_leaf *leaf);

/* `depth` frames below a function that aligns its stack. */
uint32_t chain_aligned(int depth, chain_leaf *leaf);
