/* Swaps the memory of one device out to a file, and in again, while the program is paused.
 *
 * While memory is out, the device must be idle, no work may be submitted to it, and no memory may
 * be allocated on it. No locking: the caller holds the lock of struct spw_migrate. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migrate/host/swap_file.h"
#include "pool/pool.h"

/* A chunk that is out. */
struct spw_swapped {
    struct spw_swap_chunk chunk;
    uint64_t offset, hash; /* offset of its content in the file; hash of the content */
    bool mapped;           /* memory is mapped for it again, but without its content */
};

/* Begins all zero. All calls for one struct spw_swap must pass the same pool. */
struct spw_swap {
    struct spw_swapped *chunks;
    size_t count, capacity;
};

/* The result of a call. */
struct spw_swap_result {
    uint64_t bytes; /* bytes that the call swapped out, or in */
    uint64_t left;  /* bytes that were not swapped in and are still out */
    int error;      /* an errno: an error of the file; EIO for one of the driver; EBADMSG when the
                     * file has changed; 0: no error; bytes are left only for lack of room */
};

/* Swaps out all memory that may move. After an error the remaining memory stays in place. */
struct spw_swap_result spw_migrate_swap_out(struct spw_swap *swap, struct spw_pool *pool,
                                            struct spw_swap_file *file);

/* Swaps in all chunks that are out, each to the tier that it had or, with `host`, to the host if
 * the device has no room. A chunk for which there is no room, or which has an error, stays out for
 * the next call. */
struct spw_swap_result spw_migrate_swap_in(struct spw_swap *swap, struct spw_pool *pool,
                                           struct spw_swap_file *file, bool host);

/* Frees the records. */
void spw_migrate_swap_fini(struct spw_swap *swap);
