/* The pool of one device: blocks cut from an arena whose granules are backed on demand. It does not
 * know CUDA, the environment and the clock.
 *
 *   pool        the interface, with the parts below
 *   request     a request for memory, and its result
 *   attributes  the priority of live blocks, and why they must stay in place
 *   fences      the progress of the device, for callers
 *   move        moves between the tiers
 *   swap        release and renewal of memory under blocks
 *   export      blocks for other processes
 *   accounts    memory by call site and by group
 *   vm_ops      the operations that the pool needs from a device
 *   lifecycle   the begin and the end of a pool
 *   check       verifies all invariants
 *
 * This header, with the parts that it includes, is the pool's whole interface. Other folders
 * include only this header, vm_ops.h to implement or name the backend, and accounts.h to share the
 * accounts. Memory and time come through struct spw_vm_ops.
 *
 * Locking: one mutex per pool, taken inside every function below not marked "No lock". Driver calls
 * of an allocation are made under it; it is released during host waits. A function that returns an
 * error leaves the pool unchanged unless noted.
 *
 * Order: a block that was allocated on a stream (`stream` not NULL) is first used on that stream. A
 * block that was allocated without a stream (cuMemAlloc) may be used on every stream at once, so it
 * is cut only from memory without pending work. A block freed on a stream may be reused on that
 * stream at once. Another stream may reuse it when the fence after the free has completed, or after
 * it was made to wait for that fence. A block freed without a stream (cuMemFree) may be reused when
 * all work submitted to the device before the free has completed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "pool/accounts.h"
#include "pool/attributes.h"
#include "pool/export.h"
#include "pool/fences.h"
#include "pool/move.h"
#include "pool/request.h"
#include "pool/swap.h"
#include "pool/vm_ops.h"

struct spw_pool;

struct spw_pool_config {
    uint64_t clock;               /* first number of its frees; above all numbers of earlier pools
                                     of the device */
    uint64_t granule_bytes;       /* the driver's minimum allocation granularity */
    uint64_t chunk_bytes;         /* size of the largest chunk; less than a granule counts as one */
    uint64_t arena_bytes;         /* address space to reserve, a multiple of the granule */
    uint64_t limit_bytes;         /* most device memory in chunks, foreign charges included */
    uint64_t host_limit_bytes;    /* most host memory, in chunks or page-locked; 0: no host tier */
    bool host_untried;            /* a host tier may be opened when the device is full */
    uint32_t growth_permille;     /* free but backed memory to keep, as a share of the live peak */
    struct spw_charges *charges;  /* by site; not owned, outlives the pool; NULL: none are kept */
    struct spw_account *accounts; /* by group, SPW_ACCOUNTS entries; otherwise like `charges` */
    bool host_heap;               /* reserve addresses for blocks that are placed on the host */
    uint32_t numbered_heaps;      /* heaps that placements may choose, at most SPW_POOL_HEAPS */
    _Atomic uint64_t *to_commit;  /* counts the tasks of spw_pool_commit, for several pools; not
                                   * owned; NULL: no block is lazy */
    _Atomic uint64_t *host_chunks; /* counts granules of the host's chunks, for several pools; not
                                    * owned; NULL: not counted */
};

/* One live block. */
struct spw_block {
    uint64_t address;
    uint64_t bytes;     /* as requested */
    uint64_t id;        /* new for every allocation, never 0 */
    uint64_t stream_id; /* stream of the allocation; 0 without a stream */
    uint32_t site;
    void *context; /* current at the allocation */
    bool ordered;  /* allocated on a stream: belongs to the default memory pool */
};

/* A consistent view of the pool's figures, in bytes. */
struct spw_pool_usage {
    uint64_t limit;
    uint64_t live;         /* all blocks, plus foreign charges */
    uint64_t ordered_live; /* blocks of the default memory pool */
    uint64_t committed;    /* in chunks, plus foreign charges */
    uint64_t placed;       /* part of live that was placed on the host */
    uint64_t lazy;         /* part of live that has no memory yet */
    uint64_t uncounted;    /* blocks not counted in live, since they have no memory yet */
    uint64_t host;         /* used host memory, foreign charges included */
    uint64_t host_limit;
    uint64_t spare;        /* committed, or on the host, but under no block */
    uint64_t largest_free; /* the largest backed free extent */
};

/* ---- the pool ---- */

/* Creates a pool and reserves its arena. `counters` is not owned and must outlive the pool. */
enum spw_err spw_pool_create(const struct spw_pool_config *config, struct spw_vm *vm,
                             struct spw_counters *counters, struct spw_pool **ret_pool);

/* Releases every chunk and the arena, even under live blocks. No device work may be pending, and no
 * other thread may use the pool. Takes NULL. No lock. */
void spw_pool_destroy(struct spw_pool *pool);

/* Frees the pool's records without any call to the device (after fork, or when the context is
 * gone). Takes NULL. No lock. */
void spw_pool_abandon(struct spw_pool *pool);

/* Shuts a pool that will be destroyed while calls may still use it: it no longer allocates, frees
 * or trims. Its figures are removed from the device's counters, which another pool may then use.
 * Calls under way count in the pool's own counters. */
void spw_pool_shut(struct spw_pool *pool);

/* Take and release the lock around fork, so that the child finds the pool in a consistent state. */
void spw_pool_lock(struct spw_pool *pool);
void spw_pool_unlock(struct spw_pool *pool);

/* Checks every invariant. Returns NULL, or a static sentence that names the broken one. */
const char *spw_pool_check(struct spw_pool *pool);

/* ---- allocation ---- */

/* Allocates a block, aligned to 512 bytes, and charges it to its site and account until it is
 * freed. May wait on the host for pending fences, but only without another source of memory; with a
 * host tier the wait is short. Errors, with nothing held and *ret_result unchanged: SPW_E_LIMIT
 * when the limit refuses, SPW_E_NO_MEMORY when the device is full or there is no room on the host
 * for a block placed there, SPW_E_QUOTA when the placement's limit refuses, SPW_E_METADATA_NOMEM
 * when the process has no memory for records, or a driver error. */
enum spw_err spw_pool_alloc(struct spw_pool *pool, const struct spw_request *request,
                            struct spw_result *ret_result);

/* Frees the block that starts exactly at `address`, in the order of `stream`; NULL: after all work
 * submitted to the device so far. SPW_E_NOT_OURS when no block starts there. Makes no driver call
 * in the common case. */
enum spw_err spw_pool_free(struct spw_pool *pool, uint64_t address,
                           const struct spw_stream *stream);

/* Backs every lazy block; with `spilling`, on the host if the device has no room. Also retries to
 * map lost granules; another refusal is no error. On an error some blocks are still without memory.
 * May wait on the host for pending fences. */
enum spw_err spw_pool_commit(struct spw_pool *pool, bool spilling);

/* Frees the blocks of a context that is being destroyed. Its work must be complete. Blocks of the
 * default memory pool stay, since they outlive contexts (cuda.h, cuCtxDestroy). */
void spw_pool_free_context(struct spw_pool *pool, const void *context);

/* For a pool that is shut: forgets its page-locked memory in the context (NULL: in all), which the
 * driver frees with the context. Changes no counter. */
void spw_pool_forget_context(struct spw_pool *pool, const void *context);

/* ---- queries ---- */

/* True if `address` is in memory of the pool. For page-locked memory the answer is reliable only
 * while the caller holds a block there. No lock. */
bool spw_pool_owns(const struct spw_pool *pool, uint64_t address);

/* Finds the live block that contains `address`; false when there is none. */
bool spw_pool_find(struct spw_pool *pool, uint64_t address, struct spw_block *ret_block);

/* Calls `visit` for each run of arena addresses that has memory and is under no block. The pool's
 * lock is held, so `visit` must not call the pool. */
void spw_pool_each_free(struct spw_pool *pool,
                        void (*visit)(uint64_t address, uint64_t bytes, void *context),
                        void *context);

/* Returns the number of bytes from `address` on, at most `most`, that are in one tier. `address`
 * must be in memory of the pool. The answer holds for memory of a block until it moves. */
uint64_t spw_pool_run(struct spw_pool *pool, uint64_t address, uint64_t most);

/* Reads the figures of one moment. */
void spw_pool_usage(struct spw_pool *pool, struct spw_pool_usage *ret_usage);

/* Restarts the measurement of the peak of ordered live bytes, or of the reserved bytes. */
void spw_pool_reset_ordered_peak(struct spw_pool *pool);
void spw_pool_reset_reserved_peak(struct spw_pool *pool);

/* ---- streams ---- */

/* Use waits of the program, without a driver call. The caller reads the clock before the program
 * waits for the device. After a successful wait it reports that all frees up to that clock on
 * `stream` (NULL: on every stream of the device, in every context) are complete. */
uint64_t spw_pool_clock(struct spw_pool *pool);
void spw_pool_synchronized(struct spw_pool *pool, const struct spw_stream *stream, uint64_t clock);

/* Reports complete frees on the streams of a context. Other work, also behind a free without a
 * stream, may not be complete. */
void spw_pool_context_synchronized(struct spw_pool *pool, const void *context, uint64_t clock);

/* Keeps the order of memory freed on a stream that is about to be destroyed. Called before the
 * handle becomes invalid. */
void spw_pool_retire_stream(struct spw_pool *pool, const struct spw_stream *stream);

/* Applies the last change of the device's access list, which the backend keeps, to all mappings. */
enum spw_err spw_pool_refresh_access(struct spw_pool *pool);

/* ---- limits ---- */

/* Changes the limit. Memory committed beyond a lower limit stays until it is trimmed. */
void spw_pool_set_limit(struct spw_pool *pool, uint64_t limit_bytes);

/* Changes the host's limit. 0 ends the host tier; blocks on the host stay until they are freed. */
void spw_pool_set_host_limit(struct spw_pool *pool, uint64_t host_limit_bytes);

/* Releases free chunks while at least `keep_bytes` stay committed. Memory with blocks or pending
 * work stays. Never waits. Returns the bytes released. */
uint64_t spw_pool_trim(struct spw_pool *pool, uint64_t keep_bytes);

/* Waits a short time for each pending fence, and trims all free memory after each wait, until
 * memory is released. Returns the bytes released. */
uint64_t spw_pool_trim_pending(struct spw_pool *pool);

/* Records fences behind all frees so far, except where that is not possible now. Called before a
 * time without fences. */
void spw_pool_fence_frees(struct spw_pool *pool);

/* Releases every spare chunk of the host, and page-locked memory without a block. Returns the bytes
 * released. */
uint64_t spw_pool_trim_host(struct spw_pool *pool);

/* Tests whether the device can use host memory, and sets the host's limit if it can; *ret_moves:
 * blocks can also move. SPW_E_AGAIN when a test is not possible now. */
enum spw_err spw_pool_open_host(struct spw_pool *pool, uint64_t host_limit_bytes, bool *ret_moves);

/* True if the device cannot map chunks of the host: each new block there is page-locked as a
 * whole. */
bool spw_pool_uses_pinned(struct spw_pool *pool);

/* Sets the most granules that are mapped behind a large block that needs new addresses, while
 * chunks are spare: giving access takes long, but not longer for more granules. */
void spw_pool_map_ahead(struct spw_pool *pool, size_t granules);

/* ---- foreign memory ---- */

/* Charges device memory that the program created itself (cuMemCreate) to the limit and to `site`
 * (0: none). SPW_E_LIMIT when the memory does not fit even after trimming; with `beyond` it is
 * charged regardless of the limit. Discharge undoes a charge. */
enum spw_err spw_pool_charge(struct spw_pool *pool, uint64_t bytes, uint32_t site, bool beyond);
void spw_pool_discharge(struct spw_pool *pool, uint64_t bytes, uint32_t site);

/* Charges such memory on the host to the host's limit. It counts as spilled unless `requested`: the
 * program asked for host memory. */
enum spw_err spw_pool_charge_host(struct spw_pool *pool, uint64_t bytes, uint32_t site,
                                  bool requested);
void spw_pool_discharge_host(struct spw_pool *pool, uint64_t bytes, uint32_t site);

/* Adds such memory to the account of a placement, or removes it; `host`: it is on the host.
 * SPW_E_QUOTA when the placement's limit refuses. Does not charge the memory. */
enum spw_err spw_pool_account_add(struct spw_pool *pool, const struct spw_pool_placement *placement,
                                  uint64_t bytes, bool host);
void spw_pool_account_remove(struct spw_pool *pool, uint8_t account, uint64_t bytes, bool host);

/* Changes an entry from host to device, regardless of the limit. */
void spw_pool_account_to_device(struct spw_pool *pool, uint8_t account, uint64_t bytes);
