/* The pool of one device: blocks cut from an arena whose granules are backed as they are needed.
 *
 * This header is the pool's whole interface, together with the parts that it includes; other
 * folders include only this header, vm_ops.h to implement or name the backend, and accounts.h to
 * share the accounts. The pool is pure: no CUDA, no environment, no clock; memory and time come
 * through struct spw_vm_ops.
 *
 * Locking: one mutex per pool, taken inside every function below that does not say "no lock".
 * Driver calls of an allocation are made under it; it is released during host waits. A function
 * that returns an error leaves the pool as it was, unless it says otherwise.
 *
 * Order: a block that was allocated on a stream (`stream` not NULL) is first used on that stream.
 * A block that was allocated without a stream (cuMemAlloc) may be used anywhere at once, so it is
 * cut only from memory with no pending work. A block freed on a stream may be reused on that stream
 * at once, and on another one when the fence after the free has completed or when that other stream
 * was made to wait for it. A block freed without a stream (cuMemFree) may be reused when everything
 * submitted to the device before the free has completed. */
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
    struct spw_account *accounts; /* SPW_ACCOUNTS of them, likewise */
    bool host_heap;               /* reserve addresses for blocks that are placed on the host */
    uint32_t numbered_heaps;      /* heaps that placements may choose, at most SPW_POOL_HEAPS */
    _Atomic uint64_t *to_commit;  /* counts what spw_pool_commit has to do, for several pools; not
                                     owned; NULL: no block is lazy */
    _Atomic uint64_t *host_chunks; /* counts granules of the host's chunks, for several pools; not
                                      owned; NULL: they are not counted */
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
    uint64_t uncounted;    /* blocks that are no part of live, as they have no memory yet */
    uint64_t host;         /* used host memory, foreign charges included */
    uint64_t host_limit;
    uint64_t spare;        /* committed, or on the host, but under no block */
    uint64_t largest_free; /* the largest backed free extent */
};

/* ---- the pool ---- */

/* Creates a pool and reserves its arena. `counters` is not owned and must outlive the pool. */
enum spw_err spw_pool_create(const struct spw_pool_config *config, struct spw_vm *vm,
                             struct spw_counters *counters, struct spw_pool **ret_pool);

/* Releases every chunk and the arena, whatever is still live. No device work may be pending, and no
 * other thread may use the pool. Takes NULL. No lock. */
void spw_pool_destroy(struct spw_pool *pool);

/* Frees the pool's records without any call to the device (after fork, or when the context is
 * gone). Takes NULL. No lock. */
void spw_pool_abandon(struct spw_pool *pool);

/* Says that the pool will be destroyed, while calls may still use it: it allocates, frees and trims
 * nothing any more. What it has is taken out of the device's counters, which another pool may have
 * from now on; calls that are still under way count elsewhere. */
void spw_pool_shut(struct spw_pool *pool);

/* Hold the lock across fork, so that the child finds the pool in a consistent state. */
void spw_pool_lock(struct spw_pool *pool);
void spw_pool_unlock(struct spw_pool *pool);

/* Checks every invariant. Returns NULL, or a static sentence that names the broken one. */
const char *spw_pool_check(struct spw_pool *pool);

/* ---- allocation ---- */

/* Allocates a block, aligned to 512 bytes, and charges it to its site and account as long as it
 * lives. May wait on the host for pending fences, but only when there is no other way to get the
 * memory; with a host tier that wait is short. Errors, with nothing held and *ret_result unchanged:
 * SPW_E_LIMIT when the limit refuses, SPW_E_NO_MEMORY when the device is full or there is no room
 * on the host for a block placed there, SPW_E_QUOTA when the placement's limit refuses,
 * SPW_E_METADATA_NOMEM when the process has no memory for records, or a driver error. */
enum spw_err spw_pool_alloc(struct spw_pool *pool, const struct spw_request *request,
                            struct spw_result *ret_result);

/* Frees the block that starts exactly at `address`, in the order of `stream`; NULL: after
 * everything submitted to the device so far. SPW_E_NOT_OURS when no block starts there. Makes no
 * driver call in the common case. */
enum spw_err spw_pool_free(struct spw_pool *pool, uint64_t address,
                           const struct spw_stream *stream);

/* Backs every lazy block, with `spilling` on the host as far as the device has no room, and retries
 * to map granules that a move has lost; it is no error if that is refused again. On an error some
 * blocks are still without memory. May wait on the host for pending fences. */
enum spw_err spw_pool_commit(struct spw_pool *pool, bool spilling);

/* Frees the blocks of a context that is being destroyed and whose work is complete, except blocks
 * of the default memory pool, which outlive contexts (cuda.h, cuCtxDestroy). */
void spw_pool_free_context(struct spw_pool *pool, const void *context);

/* For a pool that is shut: its page-locked memory in the context (NULL: in any) goes with that, and
 * is not to be released. Changes no counter. */
void spw_pool_forget_context(struct spw_pool *pool, const void *context);

/* ---- queries ---- */

/* True if `address` lies in memory of the pool. For page-locked memory the answer is reliable only
 * while the caller holds a block there. No lock. */
bool spw_pool_owns(const struct spw_pool *pool, uint64_t address);

/* Finds the live block that contains `address`; false when there is none. */
bool spw_pool_find(struct spw_pool *pool, uint64_t address, struct spw_block *ret_block);

/* Calls `visit` for each run of addresses that has memory and is under no block. It is called with
 * the pool's lock, so it must not call the pool. */
void spw_pool_each_free(struct spw_pool *pool,
                        void (*visit)(uint64_t address, uint64_t bytes, void *context),
                        void *context);

/* Returns how many bytes from `address`, which is in memory of the pool, are in one tier; at most
 * `most`. True of memory that a block has as long as nothing moves. */
uint64_t spw_pool_run(struct spw_pool *pool, uint64_t address, uint64_t most);

/* Reads the figures of one moment. */
void spw_pool_usage(struct spw_pool *pool, struct spw_pool_usage *ret_usage);

/* Restarts the measurement of the peak of ordered live bytes, or of the reserved bytes. */
void spw_pool_reset_ordered_peak(struct spw_pool *pool);
void spw_pool_reset_reserved_peak(struct spw_pool *pool);

/* ---- streams ---- */

/* Learn from waits of the program, without a driver call: read the clock before the program waits
 * for the device, and after a successful wait report that everything freed by then on `stream`
 * (NULL: on every stream of the device, in every context) is complete. */
uint64_t spw_pool_clock(struct spw_pool *pool);
void spw_pool_synchronized(struct spw_pool *pool, const struct spw_stream *stream, uint64_t clock);

/* Likewise of what was freed on the streams of a context: work elsewhere, also that behind a free
 * without a stream, may not be complete. */
void spw_pool_context_synchronized(struct spw_pool *pool, const void *context, uint64_t clock);

/* Keeps the order of memory freed on a stream that is about to be destroyed. Must be called before
 * the handle becomes invalid. */
void spw_pool_retire_stream(struct spw_pool *pool, const struct spw_stream *stream);

/* Applies the change that was made last to the device's access list, which the backend keeps, to
 * everything that is mapped. */
enum spw_err spw_pool_refresh_access(struct spw_pool *pool);

/* ---- limits ---- */

/* Changes the limit. Memory committed beyond a lower limit stays until it is trimmed. */
void spw_pool_set_limit(struct spw_pool *pool, uint64_t limit_bytes);

/* Changes the host's limit. 0 ends the host tier: blocks that are there stay until freed. */
void spw_pool_set_host_limit(struct spw_pool *pool, uint64_t host_limit_bytes);

/* Releases free chunks as long as at least `keep_bytes` stay committed, as far as blocks and
 * pending work allow. Never waits. Returns the bytes released. */
uint64_t spw_pool_trim(struct spw_pool *pool, uint64_t keep_bytes);

/* Trims everything, and waits for pending work as long as that releases nothing: a short time for
 * each fence. Returns the bytes released. */
uint64_t spw_pool_trim_pending(struct spw_pool *pool);

/* Records fences behind all that was freed so far, as far as they can be recorded: for a time when
 * none can be. */
void spw_pool_fence_frees(struct spw_pool *pool);

/* Releases every spare chunk of the host and page-locked memory without a block. Returns the bytes
 * released. */
uint64_t spw_pool_trim_host(struct spw_pool *pool);

/* Tests whether the device can use host memory, and sets the host's limit if it can; *ret_moves:
 * blocks can be moved as well. SPW_E_AGAIN when this cannot be tested now. */
enum spw_err spw_pool_open_host(struct spw_pool *pool, uint64_t host_limit_bytes, bool *ret_moves);

/* True if the device cannot map chunks of the host, so that new blocks there are page-locked, each
 * as a whole. */
bool spw_pool_uses_pinned(struct spw_pool *pool);

/* Sets how many granules are mapped behind a large block that needs new addresses, at most, as long
 * as chunks are spare: giving access takes long, but not longer for more granules. */
void spw_pool_map_ahead(struct spw_pool *pool, size_t granules);

/* ---- foreign memory ---- */

/* Charges device memory that the program created itself (cuMemCreate) to the limit and to `site`
 * (0: none). SPW_E_LIMIT when it does not fit even after trimming; with `beyond` it is charged
 * whatever the limit. Discharge undoes it. */
enum spw_err spw_pool_charge(struct spw_pool *pool, uint64_t bytes, uint32_t site, bool beyond);
void spw_pool_discharge(struct spw_pool *pool, uint64_t bytes, uint32_t site);

/* Likewise for such memory on the host, against the host's limit. Unless it is `wished` there, it
 * counts as spilled. */
enum spw_err spw_pool_charge_host(struct spw_pool *pool, uint64_t bytes, uint32_t site,
                                  bool wished);
void spw_pool_discharge_host(struct spw_pool *pool, uint64_t bytes, uint32_t site);

/* Enters such memory in the account of a placement, or removes it; `host`: it is on the host.
 * SPW_E_QUOTA when the placement's limit refuses. The memory is not charged here. */
enum spw_err spw_pool_account_add(struct spw_pool *pool, const struct spw_pool_placement *placement,
                                  uint64_t bytes, bool host);
void spw_pool_account_remove(struct spw_pool *pool, uint8_t account, uint64_t bytes, bool host);

/* Corrects an entry from host to device, whatever the limit. */
void spw_pool_account_to_device(struct spw_pool *pool, uint8_t account, uint64_t bytes);
