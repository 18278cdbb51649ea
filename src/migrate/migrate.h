/* Live migration between one device and host memory: the interface of this folder.
 *
 * When the device has no room, cold blocks are evicted to host memory, and come back before they
 * are used again. Addresses stay the same: only the physical memory behind them changes. Nothing is
 * done before the first memory shortage.
 *
 *     access_log   records what the program uses; answers dirty tracking
 *     predictor    learns the repetition of accesses and predicts the next ones
 *     planner      chooses the granules to swap
 *     prefetch     decides when to migrate ahead of use
 *     throttle     keeps the program near the device, so that stopping is short
 *     migration    runs a migration: pre-copy, stop-and-copy, switch
 *     validation   samples if second copies can be skipped
 *     barrier      holds submissions back during stop-and-copy
 *     swap         moves memory to a file while the program is paused
 *     host_tier    finds out if the host is usable, and tells the user
 *     exporter     gives a block chunks that other processes can map
 *     tuning.def   all constants
 *
 * Locking: one mutex for each device, held while the host tier is probed and while memory migrates.
 * The access log's mutex and the pool's lock are taken inside it; the pool's is never held while
 * waiting for the device. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "migrate/migration.h"
#include "migrate/swap.h"
#include "pool/pool.h"

struct spw_migrate;

struct spw_migrate_config {
    struct spw_pool *pool;         /* borrowed, as are the counters: both outlive this */
    struct spw_counters *counters; /* of the device */
    int ordinal;
    uint64_t limit_bytes;  /* most host memory to use */
    uint64_t move_wait_ns; /* longest time that submissions are held back for a migration */
    bool overlap;          /* pre-copy while the program goes on submitting */
    bool trust;            /* kernels touch nothing but their arguments */
    bool audit;  /* without trust: find that out by write validation; else assume nothing */
    bool verify; /* compare content hashes before and after each switch */
    /* True when blocks may move now. Called without a lock. */
    bool (*may_move)(void);
    /* Writes a short description of a call site, for messages. */
    void (*label)(uint32_t site, char *text, size_t capacity);
    /* Writes a short description of the call under way, likewise. */
    void (*describe)(uint32_t site, char *text, size_t capacity);
    /* Is told of a migration that has succeeded; NULL: nobody. Called with the tier's lock held. */
    spw_migrate_moved *moved;
    /* How many more bytes of host memory may be taken now; NULL: any. Reads files. */
    uint64_t (*host_room)(void);
};

/* Creates it; nothing is probed yet. SPW_E_METADATA_NOMEM when the process has no memory. */
enum spw_err spw_migrate_create(const struct spw_migrate_config *config,
                                struct spw_migrate **ret_tier);

/* Frees the records. Takes NULL. No other thread uses it any more. */
void spw_migrate_destroy(struct spw_migrate *tier);

/* Probes the host now if a shortage is near, since during the capture that is about to begin it
 * cannot be done. A program that fits pays nothing. */
void spw_migrate_prepare(struct spw_migrate *tier);

/* True unless the host is known to be full or unusable. Does not block. */
bool spw_migrate_has_room(struct spw_migrate *tier);

/* True when the device can map chunks of host memory; probes at the first call. */
bool spw_migrate_can_map_host(struct spw_migrate *tier);

/* ---- making room ---- */

/* Serves an allocation that the pool refused: evicts blocks to make room on the device, or places
 * the block on the host. `refused` is the pool's answer, SPW_E_LIMIT or SPW_E_NO_MEMORY; it is
 * returned when neither works. */
enum spw_err spw_migrate_alloc(struct spw_migrate *tier, const struct spw_request *request,
                               enum spw_err refused, struct spw_result *ret_result);

/* Evicts some blocks, so that trimming the pool can give memory back to the driver, which needs it
 * for something else. False when nothing was evicted. */
bool spw_migrate_evict_some(struct spw_migrate *tier);

/* Finishes the migrations in flight, if the device is idle but for their copies. Otherwise they go
 * on. They pin memory, also of blocks that were freed meanwhile, which is about to be trimmed.
 * Waits for all copies together for move_wait_ns at most, and for the program's work for 0.1 ms, as
 * its memory is in use until that is complete. */
void spw_migrate_settle(struct spw_migrate *tier);

/* Gives up the migrations that are in flight: nothing has changed. */
void spw_migrate_give_up(struct spw_migrate *tier);

/* Finishes the migrations in flight and lets none begin until spw_migrate_release_moves. Takes
 * NULL. */
void spw_migrate_hold_moves(struct spw_migrate *tier);
void spw_migrate_release_moves(struct spw_migrate *tier);

/* The program has waited for the device, which is idle now: brings back what fits, or goes on with
 * prefetching. Cheap when nothing is on the host. */
void spw_migrate_idle(struct spw_migrate *tier);

/* Tells the user once that `host_bytes` are on the host because of this request: bytes of older
 * blocks if `moved`, else of the new one. */
void spw_migrate_announce(struct spw_migrate *tier, const struct spw_request *request,
                          uint64_t host_bytes, bool moved);

/* The program is about to launch a CUDA graph that names the blocks at these addresses: brings them
 * back to the device, and evicts others for them. Waits for the device before each move, as other
 * moves do. False when a part of them stays on the host, since there is no room, the device does
 * not become idle, nothing may move, or the program is paused. */
bool spw_migrate_fetch(struct spw_migrate *tier, const uint64_t *addresses, size_t count);

/* ---- pauses ---- */

/* Moves all blocks that may move to the host, or those that pass the filter (NULL: all), and keeps
 * them there until they return, unless a migration for an allocation or a use needs them. `held`:
 * nothing is submitted until then, so blocks that CUDA graphs name move as well. Waits at most
 * `wait_ns` for the device to become idle. *ret_bytes is how much moved. SPW_OK when nothing that
 * may move is left on the device; SPW_E_UNSUPPORTED when memory cannot move to the host,
 * SPW_E_NO_MEMORY when the host has no room, SPW_E_AGAIN when the device did not become idle. */
enum spw_err spw_migrate_evict_all(struct spw_migrate *tier, const struct spw_block_filter *only,
                                   bool held, uint64_t wait_ns, uint64_t *ret_bytes);

/* Ends that, and brings blocks back as far as the device has room, those that graphs name first;
 * the others stay usable where they are, and come back later. */
void spw_migrate_return_all(struct spw_migrate *tier, uint64_t wait_ns, uint64_t *ret_bytes);

/* Likewise only the blocks that pass the filter; the others stay there. */
void spw_migrate_return_some(struct spw_migrate *tier, const struct spw_block_filter *only,
                             uint64_t wait_ns, uint64_t *ret_bytes);

/* Swapping to a file, while the program is held and nothing is submitted (swap.h). First, for each
 * device: waits at most `wait_ns` until it is idle; else SPW_E_AGAIN. Then swaps out all memory
 * that may move, and before the program goes on swaps in again, also to the host where the device
 * has no room. When nothing is left, spw_migrate_return_all ends the pause. */
enum spw_err spw_migrate_swap_prepare(struct spw_migrate *tier, uint64_t wait_ns);
struct spw_swap_result spw_migrate_swap_out_all(struct spw_migrate *tier,
                                                struct spw_swap_file *file);
struct spw_swap_result spw_migrate_swap_in_all(struct spw_migrate *tier,
                                               struct spw_swap_file *file);

/* ---- recording, from the first shortage on; these ignore calls before it ---- */

/* True when accesses are recorded. No lock. */
bool spw_migrate_is_recording(const struct spw_migrate *tier);

/* Records an allocation, and a free before it takes place. */
void spw_migrate_allocated(struct spw_migrate *tier, uint64_t address, uint64_t bytes,
                           uint32_t site);
void spw_migrate_freed(struct spw_migrate *tier, uint64_t address);

/* Records an allocation that says nothing of the next ones: it may be given back at once. With
 * `untracked` the block's place is not the tier's to choose, and its uses do not matter to it. */
void spw_migrate_entered(struct spw_migrate *tier, uint64_t address, uint64_t bytes, uint32_t site,
                         bool untracked);

/* True when the next call should pass its stream to spw_migrate_before_submit. No lock. */
bool spw_migrate_wants_stream(const struct spw_migrate *tier);

/* Called before a submission enters the submit barrier. Prefetches, throttles the program, and
 * waits (bounded) for blocks among `addresses` that are on their way to the device. `stream` may be
 * NULL: unknown. */
void spw_migrate_before_submit(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                               const struct spw_stream *stream);

/* Records a submission, inside the submit barrier, with all addresses of its arguments. A `kernel`
 * may reach other memory besides. Once for each submission. */
void spw_migrate_record(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                        bool kernel);

/* Records a submission that may touch anything besides these addresses. */
void spw_migrate_record_partial(struct spw_migrate *tier, const uint64_t *addresses, size_t count);

/* Records that a kernel is launched for the first time. Called before spw_migrate_record. */
void spw_migrate_record_new_kernel(struct spw_migrate *tier);

/* Records that a step begins: the predictor takes the distance between marks as the period, instead
 * of detecting it. */
void spw_migrate_mark_step(struct spw_migrate *tier);
