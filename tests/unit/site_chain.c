/* Chains of calls outside of the object that captures, so that their frames are part of a stack. */
#include "site_chain.h"

#include <alloca.h>
#include <string.h>

#define CHAIN __attribute__((visibility("default"), noinline))

/* Keeps a call from becoming a jump, which would leave no frame. */
#define KEEP() __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) uint32_t descend(int depth, chain_leaf *leaf)
{
    uint32_t result = depth == 0 ? leaf() : descend(depth - 1, leaf);

    KEEP();
    return result;
}

CHAIN uint32_t chain_one(int depth, chain_leaf *leaf)
{
    uint32_t result = descend(depth, leaf);

    KEEP();
    return result;
}

CHAIN uint32_t chain_two(int depth, chain_leaf *leaf)
{
    uint32_t result = descend(depth, leaf);

    KEEP();
    return result;
}

static __attribute__((noinline)) uint32_t sized(size_t bytes, chain_leaf *leaf)
{
    char *room = alloca(bytes);
    uint32_t result;

    KEEP();
    __asm__ volatile("" ::"r"(room));
    result = leaf();
    KEEP();
    return result;
}

CHAIN uint32_t chain_sized(size_t outer, size_t inner, chain_leaf *leaf)
{
    char *room = alloca(outer);
    uint32_t result;

    __asm__ volatile("" ::"r"(room) : "memory");
    result = inner > 0 ? sized(inner, leaf) : descend(1, leaf);
    KEEP();
    return result;
}

CHAIN uint32_t chain_sized_too(size_t outer, size_t inner, chain_leaf *leaf)
{
    char *room = alloca(outer);
    uint32_t result;

    __asm__ volatile("" ::"r"(room) : "memory");
    result = inner > 0 ? sized(inner, leaf) : descend(1, leaf);
    KEEP();
    return result;
}

CHAIN uint32_t chain_aligned(int depth, chain_leaf *leaf)
{
    _Alignas(64) char room[64];
    uint32_t result;

    __asm__ volatile("" ::"r"(room) : "memory");
    result = descend(depth, leaf);
    KEEP();
    return result;
}
