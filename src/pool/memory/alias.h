/* Second mappings of chunks, for moves to fill the chunks.
 *
 * A move copies to its new chunks before it maps them in place of the old ones. For its first move,
 * a chunk is mapped at an address of its own, behind the arena. It stays mapped there until it is
 * released, because a chunk that moved is likely to move again. There are enough addresses for all
 * chunks of device and host. The program never sees these addresses.
 *
 * The caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/map.h"
#include "pool/vm_ops.h"

/* The number of orders of chunks. The largest chunk has 32 granules, 64 MiB on today's devices. */
enum { SPW_CHUNK_ORDERS = 6 };

/* Addresses for chunks of one order that no chunk uses now. */
struct spw_free_aliases {
    uint64_t *addresses;
    size_t count, capacity;
};

/* `vm` is not owned. */
struct spw_aliases {
    struct spw_vm *vm;
    uint64_t granule_bytes;
    uint64_t next, end;       /* the range of addresses that no chunk has had yet */
    struct spw_map addresses; /* by chunk; the address is odd while the chunk has no access there */
    struct spw_free_aliases freed[SPW_CHUNK_ORDERS];
};

/* Returns the second address of a chunk of this order. The chunk is mapped and accessible there. */
enum spw_err spw_pool_alias_get(struct spw_aliases *aliases, uint64_t chunk, unsigned order,
                                uint64_t *ret_address);

/* Unmaps a chunk from its second address, if it has one. No copy may be using that address. Returns
 * false if the backend refuses. */
bool spw_pool_alias_drop(struct spw_aliases *aliases, uint64_t chunk, unsigned order);

/* Frees the records. */
void spw_pool_alias_fini(struct spw_aliases *aliases);
