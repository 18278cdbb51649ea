/* The pool of one device: blocks cut from an arena whose granules are backed on demand. It does not
 * know CUDA, the environment and the clock.
 *
 *   pool        the interface, with the parts below
 *   request     a request for memory, and its result
 *   attributes  the priority of live blocks, and why they must stay in place
 *   fences      the progress of the device, for callers
 *   move        moves between the tiers
 *   swap        releases memory under blocks, and creates it again
 *   export      blocks for other processes
 *   accounts    memory by call site and by group
 *   vm_ops      the operations that the pool needs from a device
 *   lifecycle   creates and destroys a pool
 *   check       verifies all invariants
 *
 * This header and the parts that it includes are the whole interface of the pool. Other folders
 * include only this header. There are two exceptions: vm_ops.h, to implement or name the backend,
 * and accounts.h, to share the accounts. Memory and time come through struct spw_vm_ops.
 *
 * Locking: each pool has one mutex, which every function below takes unless marked "No lock".
 * Driver calls of an allocation are made with the lock held. The lock is released while a thread
 * waits on the host. A function that returns an error leaves the pool unchanged unless noted.
 *
 * Order: a block that was allocated on a stream (`stream` not NULL) is first used on that stream. A
 * block that was allocated without a stream (cuMemAlloc) may be used on every stream at once, so it
 * is cut only from memory without pending work. If a block is freed on a stream, that stream may
 * reuse its memory at once. Another stream may reuse it when the fence after the free has
 * completed, or after that stream was made to wait for the fence. If a block is freed without a
 * stream (cuMemFree), its memory may be reused when all work submitted to the device before the
 * free has completed. */
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
    uint64_t clock;                /* number of the pool's first free; must be above all numbers of
                                      earlier pools of the device */
    uint64_t granule_bytes;        /* the driver's minimum allocation granularity */
    uint64_t chunk_bytes;          /* size of the largest chunk; a size below one granule counts as
                                      one granule */
    uint64_t arena_bytes;          /* size of the address space to reserve, a multiple of the
                                      granule */
    uint64_t limit_bytes;          /* most device memory in chunks, including foreign charges */
    bool bounded;                  /* others take of the same memory: vm_ops.room bounds it too */
    uint64_t host_limit_bytes;     /* most host memory, in chunks or page-locked; 0: no host tier */
    bool host_untried;             /* a host tier may be opened later, when the device is full */
    uint32_t growth_permille;      /* free but backed memory to keep, as a share of the live peak */
    struct spw_charges *charges;   /* by site; not owned, outlives the pool; NULL: no charges are
                                      recorded */
    struct spw_account *accounts;  /* by group, SPW_ACCOUNTS entries; not owned, outlives the pool;
                                      NULL: none are recorded */
    bool host_heap;                /* reserve addresses for blocks that are placed on the host */
    uint32_t numbered_heaps;       /* number of heaps that placements may choose, at most
                                      SPW_POOL_HEAPS */
    _Atomic uint64_t *to_commit;   /* number of tasks for spw_pool_commit, of several pools; not
                                      owned; NULL: no block is lazy */
    _Atomic uint64_t *host_chunks; /* number of granules in host chunks, of several pools; not
                                      owned; NULL: not counted */
};

/* One live block. */
struct spw_block {
    uint64_t address;
    uint64_t bytes;     /* as requested */
    uint64_t id;        /* new for every allocation, never 0 */
    uint64_t stream_id; /* stream of the allocation; 0 without a stream */
    uint32_t site;
    void *context; /* the context that was current at the allocation */
    bool ordered;  /* allocated on a stream, so it belongs to the default memory pool */
};

/* A consistent view of the pool's figures, in bytes. */
struct spw_pool_usage {
    uint64_t limit;
    uint64_t live;         /* all blocks, plus foreign charges */
    uint64_t ordered_live; /* blocks of the default memory pool */
    uint64_t committed;    /* in chunks, plus foreign charges */
    uint64_t placed;       /* part of live that was placed on the host */
    uint64_t lazy;         /* part of live that has no memory yet */
    uint64_t uncounted;    /* blocks that are not counted in live, because they have no memory
                              yet */
    uint64_t host;         /* used host memory, including foreign charges */
    uint64_t host_limit;
    uint64_t spare;        /* committed memory, or memory on the host, that is under no block */
    uint64_t largest_free; /* the largest backed free extent */
};

/* ---- the pool ---- */

/* Creates a pool and reserves its arena. `counters` is not owned and must outlive the pool. */
enum spw_err spw_pool_create(const struct spw_pool_config *config, struct spw_vm *vm,
                             struct spw_counters *counters, struct spw_pool **ret_pool);

/* Releases every chunk and the arena, even under live blocks. There must be no pending device work,
 * and no other thread may be using the pool. Takes NULL. No lock. */
void spw_pool_destroy(struct spw_pool *pool);

/* Frees the pool's records without any call to the device. For a child after fork, and after the
 * context is gone. Takes NULL. No lock. */
void spw_pool_abandon(struct spw_pool *pool);

/* Shuts a pool that will be destroyed, while calls may still be using it. A pool that is shut no
 * longer allocates, frees or trims. Its figures are subtracted from the device's counters, which
 * another pool may then use. Calls in progress are counted in the pool's own counters. */
void spw_pool_shut(struct spw_pool *pool);

/* Take and release the lock around fork, so that the child finds the pool in a consistent state. */
void spw_pool_lock(struct spw_pool *pool);
void spw_pool_unlock(struct spw_pool *pool);

/* Checks every invariant. Returns NULL, or a static sentence that names the broken one. */
const char *spw_pool_check(struct spw_pool *pool);

/* ---- allocation ---- */

/* Allocates a block, aligned to 512 bytes. Charges it to its site and account until it is freed. If
 * there is no other source of memory, may wait on the host for pending fences. With a host tier,
 * that wait is short. After an error, nothing is held and *ret_result is unchanged. SPW_E_LIMIT:
 * the limit refuses. SPW_E_NO_MEMORY: the device is full, or the host has no room for a block that
 * is placed there. SPW_E_QUOTA: the limit of the placement refuses. SPW_E_METADATA_NOMEM: the
 * process has no memory for records. Other errors are the driver's. */
enum spw_err spw_pool_alloc(struct spw_pool *pool, const struct spw_request *request,
                            struct spw_result *ret_result);

/* Frees the block that starts exactly at `address`, in the order of `stream`. If `stream` is NULL,
 * frees it in the order of all work submitted to the device so far. Returns SPW_E_NOT_OURS if no
 * block starts there. Usually makes no driver call. */
enum spw_err spw_pool_free(struct spw_pool *pool, uint64_t address,
                           const struct spw_stream *stream);

/* Backs every lazy block. With `spilling`, backs it on the host if the device has no room. Also
 * tries again to map lost granules; it is not an error if this fails again. After an error, some
 * blocks still have no memory. May wait on the host for pending fences. */
enum spw_err spw_pool_commit(struct spw_pool *pool, bool spilling);

/* Frees the blocks of a context that is being destroyed. The context's work must be complete.
 * Blocks of the default memory pool stay, because they outlive contexts (cuda.h, cuCtxDestroy). */
void spw_pool_free_context(struct spw_pool *pool, const void *context);

/* For a pool that is shut: forgets its page-locked memory in the context (NULL: in all contexts).
 * The driver frees this memory with the context. Changes no counter. */
void spw_pool_forget_context(struct spw_pool *pool, const void *context);

/* ---- queries ---- */

/* Returns true if `address` is in memory of the pool. For page-locked memory, the result is
 * reliable only while the caller holds a block there. No lock. */
bool spw_pool_owns(const struct spw_pool *pool, uint64_t address);

/* Finds the live block that contains `address`. Returns false if there is none. */
bool spw_pool_find(struct spw_pool *pool, uint64_t address, struct spw_block *ret_block);

/* Calls `visit` for each run of arena addresses that has memory but no block. The pool's lock is
 * held, so `visit` must not call the pool. */
void spw_pool_each_free(struct spw_pool *pool,
                        void (*visit)(uint64_t address, uint64_t bytes, void *context),
                        void *context);

/* Returns the number of bytes from `address` on, at most `most`, that are in one tier. `address`
 * must be in memory of the pool. The result for a block is valid until the block moves. */
uint64_t spw_pool_run(struct spw_pool *pool, uint64_t address, uint64_t most);

/* Reads all figures at one moment. */
void spw_pool_usage(struct spw_pool *pool, struct spw_pool_usage *ret_usage);

/* Restart the measurement of the peak of ordered live bytes, and of the peak of reserved bytes. */
void spw_pool_reset_ordered_peak(struct spw_pool *pool);
void spw_pool_reset_reserved_peak(struct spw_pool *pool);

/* ---- streams ---- */

/* Make use of waits of the program, without a driver call. The caller reads the clock before the
 * program waits for the device. After a successful wait, the caller reports that all frees on
 * `stream` up to that clock are complete. If `stream` is NULL, it reports this for every stream of
 * the device, in every context. */
uint64_t spw_pool_clock(struct spw_pool *pool);
void spw_pool_synchronized(struct spw_pool *pool, const struct spw_stream *stream, uint64_t clock);

/* Reports that the frees on the streams of a context are complete. Other work may not be complete,
 * for example work behind a free without a stream. */
void spw_pool_context_synchronized(struct spw_pool *pool, const void *context, uint64_t clock);

/* Keeps the order of memory that was freed on a stream. Called when the stream is about to be
 * destroyed, before its handle becomes invalid. */
void spw_pool_retire_stream(struct spw_pool *pool, const struct spw_stream *stream);

/* Applies the last change of the device's access list to all mappings. The backend has the list. */
enum spw_err spw_pool_refresh_access(struct spw_pool *pool);

/* ---- limits ---- */

/* Changes the limit. If the limit falls below the committed memory, the excess stays until it is
 * trimmed. */
void spw_pool_set_limit(struct spw_pool *pool, uint64_t limit_bytes);

/* Changes the host's limit. A limit of 0 ends the host tier; blocks on the host stay until they are
 * freed. */
void spw_pool_set_host_limit(struct spw_pool *pool, uint64_t host_limit_bytes);

/* Releases free chunks as long as at least `keep_bytes` stay committed. Memory with blocks or
 * pending work stays. Never waits. Returns the bytes released. */
uint64_t spw_pool_trim(struct spw_pool *pool, uint64_t keep_bytes);

/* Waits a short time for each pending fence, and trims all free memory after each wait. Stops when
 * memory was released. Returns the bytes released. */
uint64_t spw_pool_trim_pending(struct spw_pool *pool);

/* Records fences behind all frees so far, except where this is not possible now. Called when no
 * fences can be recorded for some time. */
void spw_pool_fence_frees(struct spw_pool *pool);

/* Releases every spare chunk of the host, and all page-locked memory without a block. Returns the
 * bytes released. */
uint64_t spw_pool_trim_host(struct spw_pool *pool);

/* Tests whether the device can use host memory. If it can, sets the host's limit. *ret_moves is
 * true if blocks can also move. Returns SPW_E_AGAIN if a test is not possible now. */
enum spw_err spw_pool_open_host(struct spw_pool *pool, uint64_t host_limit_bytes, bool *ret_moves);

/* Returns true if the device cannot map chunks of the host. Each new block on the host is then
 * page-locked as a whole. */
bool spw_pool_uses_pinned(struct spw_pool *pool);

/* Sets how many granules may be mapped ahead. If a large block needs new addresses and chunks are
 * spare, these granules are mapped behind it. Giving access takes long, but not longer for more
 * granules. */
void spw_pool_map_ahead(struct spw_pool *pool, size_t granules);

/* ---- foreign memory ---- */

/* Charges device memory that the program created itself (cuMemCreate) to the limit and to `site`
 * (0: none). Returns SPW_E_LIMIT if the memory does not fit even after trimming. With `beyond`,
 * charges it regardless of the limit. Discharge undoes a charge. */
enum spw_err spw_pool_charge(struct spw_pool *pool, uint64_t bytes, uint32_t site, bool beyond);
void spw_pool_discharge(struct spw_pool *pool, uint64_t bytes, uint32_t site);

/* Charge host memory that the program created itself to the host's limit, and undo such a charge.
 * The memory counts as spilled, unless the program asked for host memory (`requested`). */
enum spw_err spw_pool_charge_host(struct spw_pool *pool, uint64_t bytes, uint32_t site,
                                  bool requested);
void spw_pool_discharge_host(struct spw_pool *pool, uint64_t bytes, uint32_t site);

/* Add such memory to the account of a placement, and remove it. `host`: the memory is on the host.
 * Returns SPW_E_QUOTA if the limit of the placement refuses. Does not charge the memory. */
enum spw_err spw_pool_account_add(struct spw_pool *pool, const struct spw_pool_placement *placement,
                                  uint64_t bytes, bool host);
void spw_pool_account_remove(struct spw_pool *pool, uint8_t account, uint64_t bytes, bool host);

/* Changes memory in an account from host to device, regardless of the limit. */
void spw_pool_account_to_device(struct spw_pool *pool, uint8_t account, uint64_t bytes);
