/* The address space of the arena: which addresses are blocks, free, or holes.
 *
 * Heaps (small blocks, large ones, those on the host by policy, those of each region), each a list
 * of extents from its base to its frontier, behind which nothing was ever used. Free extents of one
 * lane join with their neighbours; holes join with holes. A free extent with a granule on the host,
 * but for the host's own heap, is in no bin: it is for blocks that may be there, or waits until the
 * host's chunks can be taken from it (spw_pool_space_shed). Nothing here calls the seam but
 * stealing and shedding, through backing. Caller holds the pool's lock. Functions that
 * need extent records reserve them first and change nothing when the host has no memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/backing.h"
#include "pool/extent.h"
#include "pool/stream_queue.h"

struct spw_heap {
    uint64_t base, end, frontier;
    struct spw_extent *first, *last;
    struct spw_age_list holes;
};

struct spw_space {
    struct spw_heap heaps[SPW_HEAP_COUNT];
    struct spw_extent_store store;
    size_t host_extents; /* free extents on the host, but for those of its own heap */
    struct spw_stream_queues *lanes;
    struct spw_backing *backing;
};

/* Divides the arena of `backing` between the heaps; there is one for the host, and for `regions`,
 * only if they are asked for. */
void spw_pool_space_init(struct spw_space *space, struct spw_stream_queues *lanes,
                         struct spw_backing *backing, bool host, uint32_t regions);
void spw_pool_space_fini(struct spw_space *space);

/* The free extent, of `lane` if not NULL or idle, that serves `bytes` best; NULL: none fits. */
struct spw_extent *spw_pool_space_best(const struct spw_space *space, enum spw_heap_class heap,
                                       uint64_t bytes, const struct spw_stream_queue *lane);

/* Cuts a block of `bytes` from a free extent, at the end that blocks of its size go to (window.h);
 * the rest stays free. NULL when the host has no memory. The caller fills in what belongs to the
 * block. */
struct spw_extent *spw_pool_space_take(struct spw_space *space, struct spw_extent *extent,
                                       uint64_t bytes);

/* Frees a block in the order of `lane`, whose count the caller has raised. The record is reused. */
void spw_pool_space_free(struct spw_space *space, struct spw_extent *block,
                         struct spw_stream_queue *lane);

/* Frees a block that has no memory: its granules are a hole. */
void spw_pool_space_vacate(struct spw_space *space, struct spw_extent *block);

/* Frees what a block has behind its first `bytes`, which nothing was done with, if there is any;
 * needs an earlier spw_pool_space_can_cut. */
void spw_pool_space_cut_tail(struct spw_space *space, struct spw_extent *block, uint64_t bytes);

/* Makes sure of a record for a cut; false when the host has no memory. */
bool spw_pool_space_can_cut(struct spw_space *space);

/* Makes idle what the lane's completed fences cover. */
void spw_pool_space_settle(struct spw_space *space, struct spw_stream_queue *lane);

/* What a window may be made of. */
enum spw_window_kind {
    SPW_WINDOW_DEVICE, /* what is backed on the device or not at all */
    SPW_WINDOW_ANY,    /* also what is on the host */
    SPW_WINDOW_FRESH   /* whole granules of which none is backed */
};

/* Claims live only while the lock is held: the records they may need are reserved with them.
 *
 * Takes the window for `bytes` that needs the fewest new granules out of the free space usable by
 * `lane` (NULL: idle only), made of what `kind` says. SPW_E_NO_MEMORY when no run of
 * addresses is long enough, SPW_E_METADATA_NOMEM when the host has no memory. */
enum spw_err spw_pool_space_claim(struct spw_space *space, enum spw_heap_class heap, uint64_t bytes,
                                  const struct spw_stream_queue *lane, enum spw_window_kind kind,
                                  struct spw_extent **ret_claim);

/* Gives a claimed window back, free or hole granule by granule as it is backed now. */
void spw_pool_space_unclaim(struct spw_space *space, struct spw_extent *claim);

/* Makes the first `bytes` of a claim, all backed now, a block and gives the rest back. */
struct spw_extent *spw_pool_space_settle_claim(struct spw_space *space, struct spw_extent *claim,
                                               uint64_t bytes);

/* Makes `count` chunks spare if so many can be taken from inside free extents without waiting.
 * Returns how many. */
size_t spw_pool_space_steal(struct spw_space *space, size_t count);

/* Makes spare the host's chunks inside free extents, as far as no work is pending there; the first
 * but for those of the host's own heap, the second those alone. */
void spw_pool_space_shed(struct spw_space *space);
void spw_pool_space_shed_host(struct spw_space *space);

/* Looks again whether a free extent is on the host, when chunks under it were exchanged. */
void spw_pool_space_rehost(struct spw_space *space, struct spw_extent *extent);

/* Takes what is broken of a free extent out of use; takes what is no longer broken, in any heap,
 * into use again. */
void spw_pool_space_condemn(struct spw_space *space, struct spw_extent *extent);
void spw_pool_space_revive(struct spw_space *space);

/* The extents whose blocks are moved, by rising address: those of large blocks and of regions. What
 * a rule has placed on the host stays there. */
struct spw_extent *spw_pool_space_first_large(const struct spw_space *space);
struct spw_extent *spw_pool_space_next_large(const struct spw_space *space,
                                             const struct spw_extent *extent);

/* The extent that contains `address`, or NULL. */
struct spw_extent *spw_pool_space_find(const struct spw_space *space, uint64_t address);
