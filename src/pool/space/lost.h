/* Lost granules: a move has unmapped them, and the backend refused to map them again or to give
 * access. The chunk still has the content. Mapping is tried again before each submission and each
 * move. The caller holds the pool's lock, or is the only user of the pool. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct spw_backing;
struct spw_space;

/* Counts the pool in to_commit while granules are lost, so that spw_pool_commit is called before
 * the next work is submitted. Called after each change of lost granules. */
void spw_pool_lost_announce(struct spw_backing *backing);

/* Withdraws the announcement of a pool that is being freed. */
void spw_pool_lost_abandon(struct spw_backing *backing);

/* Tries again to map lost granules. Returns true if no granule is lost any more. */
bool spw_pool_lost_remap(struct spw_space *space);

/* Returns the index of the first lost granule. There must be one. */
size_t spw_pool_lost_first(const struct spw_backing *backing);
