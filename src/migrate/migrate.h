/* Live migration of memory between one device and the host. It does not know CUDA.
 *
 *   migrate    the interface of the folder
 *   exporter   replaces a block's chunks by ones that other processes can map
 *   tuning     the tuning constants of moves
 *
 * When the device has no room, cold blocks are evicted to host memory. They return before their
 * next use. Addresses stay the same: only the physical memory behind them changes. Before the first
 * memory shortage no work is done.
 *
 * Locking: one mutex for each device, held while the host tier is probed and while memory migrates.
 * The access log's mutex and the pool's lock are taken inside it. The pool's lock is never held
 * during a wait for the device. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "common/host_bound.h"
#include "migrate/host/swap.h"
#include "migrate/move/migration.h"
#include "pool/pool.h"

struct spw_migrate;

struct spw_migrate_config {
    struct spw_pool *pool;         /* borrowed; outlives the tier */
    struct spw_counters *counters; /* the device's; borrowed; outlive the tier */
    int ordinal;
    struct spw_host_limit limit; /* most host memory to use */
    uint64_t move_wait_ns;       /* longest time that submissions are held back for a migration */
    bool overlap;                /* pre-copy while the program submits */
    bool guarded;                /* granules are unmapped before they are copied (migration.h) */
    bool verify;                 /* compare content hashes before and after each switch */
    /* True when blocks may move now. Called without a lock. */
    bool (*may_move)(void);
    /* Writes a short description of the call under way, for messages. */
    void (*describe)(uint32_t site, char *text, size_t capacity);
    /* Called after a migration that switched granules, with the tier's lock held; may be NULL. */
    spw_migrate_moved *moved;
    /* As in struct spw_host_tier. */
    struct spw_host_limit (*host_room)(void);
    enum spw_host_bound (*host_wall)(uint64_t wall_bytes);
};

/* Creates a tier; does not probe the host. SPW_E_METADATA_NOMEM when the process has no memory. */
enum spw_err spw_migrate_create(const struct spw_migrate_config *config,
                                struct spw_migrate **ret_tier);

/* Frees the records. Takes NULL. No other thread may use the tier any more. */
void spw_migrate_destroy(struct spw_migrate *tier);

/* Probes the host if a shortage is near. Called before a capture, because a capture forbids
 * probing. A program that fits pays nothing. */
void spw_migrate_prepare(struct spw_migrate *tier);

/* True unless the host is known to be full or unusable. Does not block. */
bool spw_migrate_has_room(struct spw_migrate *tier);

/* True when the device can map chunks of host memory; probes at the first call. */
bool spw_migrate_can_map_host(struct spw_migrate *tier);

/* ---- making room ---- */

/* Serves an allocation that the pool refused: evicts blocks to make room on the device, or places
 * the block on the host. `refused` is the pool's answer, SPW_E_LIMIT or SPW_E_NO_MEMORY. It is
 * returned when neither succeeds. */
enum spw_err spw_migrate_alloc(struct spw_migrate *tier, const struct spw_request *request,
                               enum spw_err refused, struct spw_result *ret_result);

/* Evicts some blocks, so that a trim of the pool can give memory back to the driver, which needs
 * the memory for other allocations. False when no block was evicted. */
bool spw_migrate_evict(struct spw_migrate *tier);

/* Finishes the migrations in flight if the device is otherwise idle; if not, they continue. Called
 * before a trim, because migrations pin memory, including memory of freed blocks. Waits at most
 * move_wait_ns for all copies together. Before each switch, waits at most 0.1 ms for the program's
 * work, which uses memory until it is complete. */
void spw_migrate_settle(struct spw_migrate *tier);

/* Gives up the migrations in flight. Their blocks stay in place, and all memory is mapped. */
void spw_migrate_give_up(struct spw_migrate *tier);

/* Finishes the migrations in flight. No migration begins until spw_migrate_release_moves. Takes
 * NULL. */
void spw_migrate_hold_moves(struct spw_migrate *tier);
void spw_migrate_release_moves(struct spw_migrate *tier);

/* Called when the program has waited for the device, so that the device is idle. Brings back blocks
 * that fit, or continues prefetching. Cheap when no blocks are on the host. */
void spw_migrate_idle(struct spw_migrate *tier);

/* Reports once that `host_bytes` are on the host because of this request. They are bytes of older
 * blocks if `moved`, otherwise of the new block. */
void spw_migrate_announce(struct spw_migrate *tier, const struct spw_request *request,
                          uint64_t host_bytes, bool moved);

/* Called before the launch of a CUDA graph that names the blocks at these addresses. Brings these
 * blocks back to the device, and evicts other blocks to make room. Each move waits for the device,
 * as other moves do. False when a part of the blocks stays on the host: there is no room, the
 * device does not become idle, blocks may not move, or the program is paused. */
bool spw_migrate_fetch(struct spw_migrate *tier, const uint64_t *addresses, size_t count);

/* ---- pauses ---- */

/* Moves to the host all blocks that may move and that pass the filter (NULL: all pass). They stay
 * there until spw_migrate_return_all, except for blocks that a migration for an allocation or a use
 * needs. `held`: no work is submitted until then, so blocks that CUDA graphs name move as well.
 * Waits at most `wait_ns` for the device to become idle. *ret_bytes is the number of bytes moved.
 * SPW_OK when all blocks that existed before and may move have left the device; SPW_E_UNSUPPORTED
 * when memory cannot move to the host, SPW_E_NO_MEMORY when the host has no room, SPW_E_AGAIN when
 * the device stays busy. */
enum spw_err spw_migrate_evict_all(struct spw_migrate *tier, const struct spw_block_filter *only,
                                   bool held, uint64_t wait_ns, uint64_t *ret_bytes);

/* Ends the stay that evict_all began. Brings back the blocks that fit on the device, beginning with
 * those that graphs name. The other blocks stay usable on the host, and return later. */
void spw_migrate_return_all(struct spw_migrate *tier, uint64_t wait_ns, uint64_t *ret_bytes);

/* Brings back the blocks that pass the filter; the other blocks stay on the host. */
void spw_migrate_return_some(struct spw_migrate *tier, const struct spw_block_filter *only,
                             uint64_t wait_ns, uint64_t *ret_bytes);

/* Swapping to a file, while the program is held and submits no work (swap.h). For each device the
 * caller first calls prepare, which waits at most `wait_ns` for an idle device (SPW_E_AGAIN if the
 * device stays busy). swap_out_all swaps out all memory that may move. Before the program
 * continues, swap_in_all swaps the memory in again, to the host if the device has no room. When no
 * memory is left in the file, spw_migrate_return_all ends the pause. */
enum spw_err spw_migrate_swap_prepare(struct spw_migrate *tier, uint64_t wait_ns);
struct spw_swap_result spw_migrate_swap_out_all(struct spw_migrate *tier,
                                                struct spw_swap_file *file);
struct spw_swap_result spw_migrate_swap_in_all(struct spw_migrate *tier,
                                               struct spw_swap_file *file);

/* ---- recording; before the first shortage these functions do nothing ---- */

/* True when accesses are recorded. No lock. */
bool spw_migrate_is_recording(const struct spw_migrate *tier);

/* Record an allocation, and a free, which is recorded before it takes place. */
void spw_migrate_allocated(struct spw_migrate *tier, uint64_t address, uint64_t bytes,
                           uint32_t site);
void spw_migrate_freed(struct spw_migrate *tier, uint64_t address);

/* Records an allocation from which no later allocation is predicted, because the block may be freed
 * at once. If it is `untracked`, the tier does not choose its place or use its accesses. */
void spw_migrate_entered(struct spw_migrate *tier, uint64_t address, uint64_t bytes, uint32_t site,
                         bool untracked);

/* True when the next call should pass its stream to spw_migrate_expect. No lock. */
bool spw_migrate_wants_stream(const struct spw_migrate *tier);

/* Called before a submission enters the submit barrier. Prefetches, throttles the program, and
 * waits (bounded) for blocks at `addresses` that are migrating to the device. `stream` is NULL if
 * it is unknown. */
void spw_migrate_expect(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                        const struct spw_stream *stream);

/* Records a submission with all addresses of its arguments. A `kernel` may also reach other memory.
 * Called inside the submit barrier, once for each submission. */
void spw_migrate_use(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                     bool kernel);

/* Records a submission that may touch memory at these addresses, if any, and any other memory. */
void spw_migrate_use_among(struct spw_migrate *tier, const uint64_t *addresses, size_t count);

/* Records that a step begins. The predictor then takes the distance between these marks as the
 * period, and does not detect it. */
void spw_migrate_mark_step(struct spw_migrate *tier);
