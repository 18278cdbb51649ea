/* The old chunks that new chunks replace: unmaps them, and maps them again if the replacement
 * fails.
 *
 * The unmapped chunks still have the content. The caller holds the pool's lock, and no device work
 * may use the granules. */
#pragma once

#include <stddef.h>

struct spw_backing;

/* Unmaps the recorded chunks of granules [first, last). Returns the end of the granules that were
 * unmapped. */
size_t spw_pool_old_chunks_unmap(struct spw_backing *backing, size_t first, size_t last);

/* Maps the chunks of granules [first, last), where nothing is mapped now, and gives access. If the
 * backend refuses a chunk twice, the chunk is marked lost (lost.h). */
void spw_pool_old_chunks_put_back(struct spw_backing *backing, size_t first, size_t last);
