/* The pool of one device: blocks cut from an arena whose granules are backed as they are needed.
 *
 * Pure: no CUDA, no environment, no clock; memory and time come through struct spw_vm_ops.
 *
 * Locking: one mutex per pool, taken inside every function below that does not say "no lock".
 * Driver calls of a miss are made under it; a host wait never is. Functions return an error and
 * leave the pool as it was, unless they say otherwise.
 *
 * Order. A block that was allocated on a stream (`stream` not NULL) is first used on it; one that
 * was allocated without (cuMemAlloc) may be used anywhere at once, so it is cut only from memory
 * with no pending work. A block freed on a stream may be used again on that stream at once, on
 * another when the fence after the free has completed or that stream was made to wait for it. A
 * block freed on SPW_STREAM_ALL (cuMemFree) may be used again when everything submitted to the
 * device before the free has completed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "pool/charges.h"
#include "pool/vm_ops.h"
#include "pool/placement.h"

struct spw_pool;

struct spw_pool_config {
    uint64_t granule_bytes;      /* the driver's minimum allocation granularity */
    uint64_t arena_bytes;        /* address space to reserve, a multiple of the granule */
    uint64_t limit_bytes;        /* most device memory in chunks, foreign charges included */
    uint64_t host_limit_bytes;   /* most host memory, in chunks or locked; 0: no host tier */
    uint32_t growth_permille;    /* growth allowance: free but backed memory, of the live peak */
    struct spw_charges *charges; /* by site, not owned, outlives the pool; NULL: none are kept */
    bool host_heap;              /* addresses for blocks that a policy places on the host */
    uint32_t regions;            /* and for so many regions of a policy, at most SPW_REGIONS */
    _Atomic uint64_t *lazies;    /* what spw_pool_commit has to do is counted here; NULL: there are
                                    no blocks without memory */
    struct spw_tally *tallies;   /* of SPW_RULES rules, likewise (see wish.h) */
};

/* One block, as it is answered to questions about an address inside it. */
struct spw_block {
    uint64_t address;
    uint64_t bytes;     /* as the program asked for it */
    uint64_t id;        /* new for every allocation, never 0 */
    uint64_t stream_id; /* of the allocation; 0 without a stream */
    uint32_t site;      /* who is charged with it */
    void *context;      /* that was current at the allocation; opaque to the pool */
    bool ordered;       /* allocated on a stream: belongs to the default memory pool */
};

/* A consistent view of the figures that answers are made of, in bytes. */
struct spw_pool_usage {
    uint64_t limit;
    uint64_t live;         /* all blocks, plus foreign charges */
    uint64_t ordered_live; /* blocks of the default memory pool */
    uint64_t committed;    /* in chunks, plus foreign charges */
    uint64_t placed;       /* of live, what rules have placed on the host */
    uint64_t lazy;         /* of live, what has no memory yet */
    uint64_t host;         /* in use of the host, the program's own that was charged included */
    uint64_t host_limit;
    uint64_t spare;        /* committed, or on the host, but under no block */
    uint64_t largest_free; /* the largest backed free extent */
};

/* Creates a pool and reserves its arena. `counters` (not owned) must outlive the pool. */
enum spw_err spw_pool_create(const struct spw_pool_config *config, const struct spw_vm_ops *ops,
                             void *vm, struct spw_counters *counters, struct spw_pool **ret_pool);

/* Releases every chunk and the arena, whatever is still live; only for orderly teardown, with no
 * device work pending. Takes NULL. */
void spw_pool_destroy(struct spw_pool *pool);

/* Forgets the pool without any call to the device (after fork, or when the context is gone). */
void spw_pool_abandon(struct spw_pool *pool);

/* Allocates a block of `bytes` (more than 0), aligned to 512 bytes, and charges it to `site` as
 * long as it lives (see charges.h). `stream` NULL: without a stream. Errors: SPW_E_LIMIT when the
 * limit refuses, SPW_E_NO_MEMORY when the device is full, SPW_E_METADATA_NOMEM, or a driver error;
 * nothing is held then. May wait on the host for pending fences, but only when the memory cannot be
 * had otherwise, and with a host tier not for long. */
enum spw_err spw_pool_alloc_for(struct spw_pool *pool, uint64_t bytes,
                                const struct spw_stream *stream, void *context, uint32_t site,
                                uint64_t *ret_address);

/* The same for nobody in particular. */
static inline enum spw_err spw_pool_alloc(struct spw_pool *pool, uint64_t bytes,
                                          const struct spw_stream *stream, void *context,
                                          uint64_t *ret_address)
{
    return spw_pool_alloc_for(pool, bytes, stream, context, 0, ret_address);
}

/* Gives every block that was allocated without memory its own, on the host what the device has no
 * room for when `spilling`. On an error some are still without. May wait for pending fences. Asks
 * again for what a move has lost; that it is refused again is no error. */
enum spw_err spw_pool_commit(struct spw_pool *pool, bool spilling);

/* Frees the block that starts exactly at `address`, ordered after the work in `stream`;
 * `stream` NULL means after everything submitted to the device so far. SPW_E_NOT_OURS when no
 * block starts there. Makes no driver call in the common case. */
enum spw_err spw_pool_free(struct spw_pool *pool, uint64_t address,
                           const struct spw_stream *stream);

/* Whether `address` lies in memory of the pool; of what is on the host in page-locked memory only
 * where the caller holds a block. No lock. */
bool spw_pool_owns(const struct spw_pool *pool, uint64_t address);

/* Finds the live block that contains `address`. */
bool spw_pool_find(struct spw_pool *pool, uint64_t address, struct spw_block *ret_block);

/* Releases free chunks as long as at least `keep_bytes` stay committed, as far as blocks and
 * pending work let it. Waits for nothing. Returns the bytes released. */
uint64_t spw_pool_trim(struct spw_pool *pool, uint64_t keep_bytes);

/* What the program's own waiting tells, at no cost: take the clock before it waits for the device,
 * and when the wait has succeeded, say that everything freed by then on `stream` (NULL: on every
 * stream of the device, in every context) is no longer used. */
uint64_t spw_pool_clock(struct spw_pool *pool);
void spw_pool_synchronized(struct spw_pool *pool, const struct spw_stream *stream, uint64_t clock);

/* Must be called before the stream's handle becomes invalid: keeps the order of what was freed on
 * it. */
void spw_pool_retire_stream(struct spw_pool *pool, const struct spw_stream *stream);

/* Accounts device memory that is the program's own (its cuMemCreate) against the limit, and charges
 * it to `site`. SPW_E_LIMIT when it does not fit even after trimming; discharge gives it back. */
enum spw_err spw_pool_charge_for(struct spw_pool *pool, uint64_t bytes, uint32_t site);
void spw_pool_discharge_for(struct spw_pool *pool, uint64_t bytes, uint32_t site);

/* The same for nobody in particular. */
static inline enum spw_err spw_pool_charge(struct spw_pool *pool, uint64_t bytes)
{
    return spw_pool_charge_for(pool, bytes, 0);
}

static inline void spw_pool_discharge(struct spw_pool *pool, uint64_t bytes)
{
    spw_pool_discharge_for(pool, bytes, 0);
}

/* The same for such memory that is on the host, against the host's limit. */
enum spw_err spw_pool_charge_host_for(struct spw_pool *pool, uint64_t bytes, uint32_t site);
void spw_pool_discharge_host_for(struct spw_pool *pool, uint64_t bytes, uint32_t site);

/* A context is going, and its work is complete: frees its blocks that are not of the default memory
 * pool, whose blocks outlive contexts (cuda.h, cuCtxDestroy). */
void spw_pool_lose_context(struct spw_pool *pool, const void *context);

/* Applies the device's present access list (kept by the seam) to everything that is mapped. */
enum spw_err spw_pool_refresh_access(struct spw_pool *pool);

/* Changes the limit; what is committed beyond a lower one stays until it is trimmed. */
void spw_pool_set_limit(struct spw_pool *pool, uint64_t limit_bytes);

/* Finds out whether the device can use memory of the host, and lets blocks have up to
 * `host_limit_bytes` of it; *ret_moves: whether blocks can be moved as well. SPW_E_AGAIN when it
 * cannot be found out now. */
enum spw_err spw_pool_open_host(struct spw_pool *pool, uint64_t host_limit_bytes, bool *ret_moves);

/* Whether the device cannot map chunks of the host, so that new blocks are in page-locked memory,
 * each as a whole. */
bool spw_pool_pins(struct spw_pool *pool);

/* How many granules are mapped beyond a large block that needs new addresses, at most, as long as
 * chunks are spare: the call that gives access takes long, but no longer for more. */
void spw_pool_map_ahead(struct spw_pool *pool, size_t granules);

/* Changes the host's limit. 0 ends the host tier: what is there stays until it is freed. */
void spw_pool_set_host_limit(struct spw_pool *pool, uint64_t host_limit_bytes);

/* Releases every spare chunk of the host, and page-locked memory without a block.
 * Returns the bytes released. */
uint64_t spw_pool_trim_host(struct spw_pool *pool);

/* Takes the figures of one moment. */
void spw_pool_usage(struct spw_pool *pool, struct spw_pool_usage *ret_usage);

/* Starts a new measurement of the peak of ordered live bytes, or of the reserved bytes. */
void spw_pool_reset_ordered_peak(struct spw_pool *pool);
void spw_pool_reset_reserved_peak(struct spw_pool *pool);

/* For fork: the lock is held across it, so that the child finds the pool in one piece. */
void spw_pool_lock(struct spw_pool *pool);
void spw_pool_unlock(struct spw_pool *pool);

/* Checks every invariant; NULL when all hold, else a static sentence naming the broken one. */
const char *spw_pool_check(struct spw_pool *pool);
