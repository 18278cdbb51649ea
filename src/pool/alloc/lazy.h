/* Lazy blocks get their addresses when they are allocated, and their memory in spw_pool_commit,
 * before the next work is submitted. Until then, each lazy block occupies whole granules of
 * addresses, and an uncounted block does not count as live. The caller holds the pool's lock, or is
 * the only user of the pool. */
#pragma once

struct spw_extent;
struct spw_pool;

/* Turns a claim without backing into a lazy block. */
struct spw_extent *spw_pool_lazy_begin(struct spw_pool *pool, struct spw_extent *claim);

/* Frees a lazy block. */
void spw_pool_lazy_free(struct spw_pool *pool, struct spw_extent *block);

/* Subtracts the lazy blocks of a pool that is being freed from to_commit. */
void spw_pool_lazy_abandon(struct spw_pool *pool);
