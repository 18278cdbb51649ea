/* Lazy blocks: they get addresses at the allocation, and memory in spw_pool_commit, before the
 * device is first given work. They take whole granules of their own until then. An uncounted
 * lazy block is no part of what is live before that. The caller holds the pool's lock, or is the
 * only user of the pool. */
#pragma once

struct spw_extent;
struct spw_pool;

/* Makes a claim that is not backed a lazy block. */
struct spw_extent *spw_pool_lazy_begin(struct spw_pool *pool, struct spw_extent *claim);

/* Frees a lazy block. */
void spw_pool_lazy_free(struct spw_pool *pool, struct spw_extent *block);

/* Takes the lazy blocks of a pool that is being freed out of config.to_commit. */
void spw_pool_lazy_abandon(struct spw_pool *pool);
