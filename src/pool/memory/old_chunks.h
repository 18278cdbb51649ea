/* The old chunks of a replacement: unmaps them, and maps them again if the replacement fails.
 *
 * The unmapped chunks keep the content. The caller holds the pool's lock, and no device work
 * touches the granules. */
#pragma once

#include <stddef.h>

struct spw_backing;

/* Unmaps the recorded chunks of granules [first, last). Returns the end of the unmapped
 * granules. */
size_t spw_pool_old_chunks_unmap(struct spw_backing *backing, size_t first, size_t last);

/* Maps the chunks of granules [first, last), where nothing is mapped, and gives access. A chunk
 * that the backend refuses twice is marked lost (lost.h). */
void spw_pool_old_chunks_put_back(struct spw_backing *backing, size_t first, size_t last);
