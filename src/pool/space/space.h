/* The addresses: which are blocks, free, or out of use. It does not know requests, and how much is
 * live.
 *
 *   heaps     finds extents of the arena by address
 *   window    chooses the addresses of a claim
 *   space     the arena: takes blocks out of free memory, and steals its chunks
 *   slabs     blocks in page-locked memory
 *   pending   makes memory idle when its work is complete
 *   lost      granules that a move has lost, until they are mapped again
 *   exported  chunks that other processes may map, until no block is on them */

/* The address space of the arena: its blocks, free extents and holes.
 *
 * Free extents of one queue merge with their neighbours; holes merge with holes. A free extent with
 * a granule on the host is in no bin, unless it is in the host's own heap. Such an extent serves
 * blocks that may be on the host, or waits until its chunks of the host are evicted. Only stealing
 * and evicting call the backend, through backing. Functions that need extent records reserve them
 * first. If the process has no memory, they have no effect. Not thread-safe: the caller holds the
 * pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/extents/extent.h"
#include "pool/memory/backing.h"
#include "pool/order/stream_queue.h"
#include "pool/space/window.h"

struct spw_space {
    struct spw_heap heaps[SPW_HEAP_COUNT];
    struct spw_extent_store store;
    size_t host_extents; /* number of free extents that are partly on the host, outside of the
                            host's heap */
    size_t ahead;        /* most granules that are mapped ahead, behind a block */
    struct spw_stream_queues *queues;
    struct spw_backing *backing;
};

/* Returns true if the arena has this heap, of enum spw_heap_class. */
static inline bool spw_pool_space_has(const struct spw_space *space, unsigned heap)
{
    return heap < SPW_HEAP_COUNT && space->heaps[heap].base < space->heaps[heap].end;
}

/* Divides the arena of `backing` between the heaps. With `host`, there is one for the host.
 * `numbered` is the number of numbered heaps. */
void spw_pool_space_init(struct spw_space *space, struct spw_stream_queues *queues,
                         struct spw_backing *backing, bool host, uint32_t numbered);
void spw_pool_space_fini(struct spw_space *space);

/* Returns the free extent that serves `bytes` best; NULL if none fits. The extent is idle, or
 * belongs to `queue` (may be NULL). */
struct spw_extent *spw_pool_space_best(const struct spw_space *space, enum spw_heap_class heap,
                                       uint64_t bytes, const struct spw_stream_queue *queue);

/* Cuts a block of `bytes` from that end of a free extent that suits its size (window.h). The rest
 * stays free. Returns NULL if the process has no memory. The caller sets the members of the
 * block. */
struct spw_extent *spw_pool_space_take(struct spw_space *space, struct spw_extent *extent,
                                       uint64_t bytes);

/* Takes a block of `bytes` at `address` out of a free extent, which is idle or belongs to `queue`
 * (may be NULL). Returns NULL if there is none, or if the process has no memory. */
struct spw_extent *spw_pool_space_take_at(struct spw_space *space, enum spw_heap_class heap,
                                          uint64_t address, uint64_t bytes,
                                          const struct spw_stream_queue *queue);

/* Frees a block in the order of `queue`. The caller has already raised the `seq` of the queue. */
void spw_pool_space_free(struct spw_space *space, struct spw_extent *block,
                         struct spw_stream_queue *queue);

/* Gives a free extent to another queue. The stream of that queue already waits for all work that
 * may use the extent. */
void spw_pool_space_adopt(struct spw_space *space, struct spw_extent *extent,
                          struct spw_stream_queue *queue);

/* Frees a lazy block, which has no memory. Its granules become a hole. */
void spw_pool_space_free_unbacked(struct spw_space *space, struct spw_extent *block);

/* Frees the part of a block behind its first `bytes`. This part was never used.
 * spw_pool_space_can_cut must have been called before. */
void spw_pool_space_cut_tail(struct spw_space *space, struct spw_extent *block, uint64_t bytes);

/* Reserves the record for one cut. Returns false if the process has no memory. */
bool spw_pool_space_can_cut(struct spw_space *space);

/* Makes the free extents of a queue idle that its completed fences cover. */
void spw_pool_space_release_completed(struct spw_space *space, struct spw_stream_queue *queue);

/* Claims the best window of the free space. If the search asks for it, the window consists of whole
 * granules. The search need not set `heap`. A claim exists only while the lock is held; the records
 * that are needed to end it are reserved with it. Returns SPW_E_NO_MEMORY if no run of addresses is
 * long enough, SPW_E_METADATA_NOMEM if the process has no memory. */
enum spw_err spw_pool_space_claim(struct spw_space *space, const struct spw_window_search *wanted,
                                  struct spw_extent **ret_claim);

/* Claims `bytes` at `address`. If an end has no backing, it is extended to a whole granule. Returns
 * SPW_E_NO_MEMORY if the addresses are not free for `queue`, or are backed on the host. */
enum spw_err spw_pool_space_claim_at(struct spw_space *space, enum spw_heap_class heap,
                                     uint64_t address, uint64_t bytes,
                                     const struct spw_stream_queue *queue,
                                     struct spw_extent **ret_claim);

/* Gives a claim back. Each granule becomes free if it is backed, and a hole if not. */
void spw_pool_space_unclaim(struct spw_space *space, struct spw_extent *claim);

/* Turns `bytes` of a claim, at `address`, into a block, and gives the rest back. */
struct spw_extent *spw_pool_space_finish_claim(struct spw_space *space, struct spw_extent *claim,
                                               uint64_t address, uint64_t bytes);

/* Unmap device chunks in free extents without pending work, and make them spare, until they have
 * `count` granules; the last chunk may exceed that. The first function does not take granules that
 * spw_pool_backing_keep has marked. The second takes these last. Both return the number of
 * granules. */
size_t spw_pool_space_steal_unkept(struct spw_space *space, size_t count);
size_t spw_pool_space_steal(struct spw_space *space, size_t count);

/* Unmap the chunks of the host in free extents without pending work, and make them spare. The first
 * function does this outside of the host's own heap, the second inside it. */
void spw_pool_space_evict_free_host(struct spw_space *space);
void spw_pool_space_evict_host_heap(struct spw_space *space);

/* Updates the index of a free extent after its chunks may have moved to the other tier. The extent
 * may then match its neighbours, so spw_pool_space_join must be called after all extents are
 * updated. */
void spw_pool_space_update_tier(struct spw_space *space, struct spw_extent *extent);

/* Merges a free extent or hole with matching neighbours, and keeps its record. Has no effect on
 * other extents, and on NULL. */
void spw_pool_space_join(struct spw_space *space, struct spw_extent *extent);

/* The first takes the broken granules of a free extent out of use. The second puts granules that
 * are no longer broken back into use, in all heaps. */
void spw_pool_space_retire(struct spw_space *space, struct spw_extent *extent);
void spw_pool_space_reinstate(struct spw_space *space);

/* Puts the granules of [address, end) that are no longer broken back into use. All granules of the
 * range must be out of use. */
void spw_pool_space_reinstate_range(struct spw_space *space, uint64_t address, uint64_t end);

/* Returns the extent that contains `address`; NULL if there is none. */
struct spw_extent *spw_pool_space_find(const struct spw_space *space, uint64_t address);
