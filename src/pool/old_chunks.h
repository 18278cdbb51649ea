/* The chunks that new ones are about to replace: unmaps them, and maps them again if that fails.
 *
 * They have the content meanwhile. The caller holds the pool's lock, and no device work touches the
 * granules. */
#pragma once

#include <stddef.h>

struct spw_pool;

/* Unmaps the chunks that are recorded for granules [first, last). Returns the end of what is
 * unmapped. */
size_t spw_pool_old_chunks_unmap(struct spw_pool *pool, size_t first, size_t last);

/* Maps the chunks of granules [first, last), where nothing is mapped, and gives access. What the
 * backend refuses twice is marked lost (lost.h). */
void spw_pool_old_chunks_put_back(struct spw_pool *pool, size_t first, size_t last);
