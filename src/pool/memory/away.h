/* Chunks that are away: they back granules of the arena, but are mapped only at their second
 * addresses (alias.h).
 *
 *     mapped --take--> away --put_back--> mapped
 *
 * While a chunk is away, the hardware reports every use of its granules as a fault. So no use can
 * be missed while the chunk is copied at its second address. Before a use that is known, the chunk
 * is put back.
 *
 * All ranges consist of whole chunks. The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/memory/backing.h"

/* Unmaps the chunks of granules [first, last), so that they are away. No work may use them. If the
 * backend refuses a part, puts the other chunks of the range back and returns false. */
bool spw_pool_away_take(struct spw_backing *backing, size_t first, size_t last);

/* Maps those chunks of granules [first, last) that are away, and gives access. If the backend
 * refuses one twice, it is marked lost (lost.h). */
void spw_pool_away_put_back(struct spw_backing *backing, size_t first, size_t last);

/* Puts all chunks back that are away. */
void spw_pool_away_put_back_all(struct spw_backing *backing);

/* Returns true if all granules [first, last) are away. */
bool spw_pool_away_has_all(const struct spw_backing *backing, size_t first, size_t last);

/* Records that granules [first, last) are no longer away: other chunks were mapped there. */
void spw_pool_away_forget(struct spw_backing *backing, size_t first, size_t last);

/* Returns the address at which a copy reads the chunk of a granule. This is the second address of
 * the chunk if it is away, otherwise the address of its first granule. */
uint64_t spw_pool_away_source(struct spw_backing *backing, size_t granule);
