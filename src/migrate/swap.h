/* Swaps the memory of one device out to a file, and in again, while the program is paused.
 *
 * For as long as anything is out, nothing may be submitted to the device, or allocated on it, and
 * the device must be idle. No locking: the caller holds the lock of struct spw_migrate. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "migrate/swap_file.h"
#include "pool/pool.h"

/* A chunk that is out. */
struct spw_swapped {
    struct spw_swap_chunk chunk;
    uint64_t offset, hash; /* of its content in the file */
    bool mapped;           /* its memory is back, its content is not */
};

/* Begins all zero; a pool is given with each call, and is the same in all. */
struct spw_swap {
    struct spw_swapped *chunks;
    size_t count, capacity;
};

/* The result of a call: what moved, and why not all did. */
struct spw_swap_result {
    uint64_t bytes; /* that went out, or came back */
    uint64_t left;  /* that should have come back, and are still out */
    int error;      /* of errno: of the file, or EIO of the driver; EBADMSG when the file does not
                     * hold what was written; 0: none, what is left has no room */
};

/* Swaps out all memory that may move. An error ends that: the rest stays where it is. */
struct spw_swap_result spw_migrate_swap_out(struct spw_swap *swap, struct spw_pool *pool,
                                            struct spw_swap_file *file);

/* Swaps in all that is out, to the tier that each chunk came from, or with `host` to the host where
 * the device has no room. What finds no room, or has an error, stays out, and is tried again by the
 * next call. */
struct spw_swap_result spw_migrate_swap_in(struct spw_swap *swap, struct spw_pool *pool,
                                           struct spw_swap_file *file, bool host);

/* Frees the records. */
void spw_migrate_swap_fini(struct spw_swap *swap);
