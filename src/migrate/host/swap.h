/* Swaps the memory of one device out to a file, and in again, while the program is paused.
 *
 * While memory is out, no work may be submitted to the device, no memory allocated on it, and the
 * device must be idle. No locking: the caller holds the lock of struct spw_migrate. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migrate/host/swap_file.h"
#include "pool/pool.h"

/* A chunk that is out. */
struct spw_swapped {
    struct spw_swap_chunk chunk;
    uint64_t offset, hash; /* of its content in the file */
    bool mapped;           /* its memory is back, but not its content */
};

/* Begins all zero. All calls for one swap name the same pool. */
struct spw_swap {
    struct spw_swapped *chunks;
    size_t count, capacity;
};

/* The result of a call. */
struct spw_swap_result {
    uint64_t bytes; /* swapped out, or in */
    uint64_t left;  /* not swapped in, and still out */
    int error;      /* of errno: of the file, or EIO of the driver; EBADMSG when the file has
                     * changed; 0: no error, and `left` has no room */
};

/* Swaps out all memory that may move. After an error the rest stays in place. */
struct spw_swap_result spw_migrate_swap_out(struct spw_swap *swap, struct spw_pool *pool,
                                            struct spw_swap_file *file);

/* Swaps in all chunks that are out, each to its earlier tier, or with `host` to the host if the
 * device has no room. A chunk without room, or with an error, stays out for the next call. */
struct spw_swap_result spw_migrate_swap_in(struct spw_swap *swap, struct spw_pool *pool,
                                           struct spw_swap_file *file, bool host);

/* Frees the records. */
void spw_migrate_swap_fini(struct spw_swap *swap);
