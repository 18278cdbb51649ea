/* The host tier of one device: where a block goes when the device has no room for it.
 *
 * Nothing is done, and nothing asked of the driver, before memory is short for the first time, or
 * a capture begins, in which nothing could be found out.
 *
 * Locking: one mutex per tier, held while it is opened and while memory is moved; the pool's is
 * taken inside it, and never held while the device is waited for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "pool/pool.h"

struct spw_migrate;

struct spw_migrate_config {
    struct spw_pool *pool;         /* not owned, nor is the next: both outlive the tier */
    struct spw_counters *counters; /* of the device */
    int ordinal;
    uint64_t limit_bytes;  /* most host memory */
    uint64_t move_wait_ns; /* how long submissions may be held back for a move */
    bool overlap;          /* copy while the program goes on submitting */
    bool trust;            /* the arguments of a kernel are all that it writes to */
    bool audit;            /* whether they are is found out */
    bool verify;           /* compare content before and after a move */
    /* Writes in a few words where the allocations of a site come from, for a line to the user. */
    void (*label)(uint32_t site, char *text, size_t capacity);
    /* Likewise for the allocation that is under way. */
    void (*describe)(uint32_t site, char *text, size_t capacity);
};

/* Makes the tier; SPW_E_METADATA_NOMEM when the process has no memory for it. */
enum spw_err spw_migrate_create(const struct spw_migrate_config *config,
                                struct spw_migrate **ret_tier);

/* Frees the records. Takes NULL. Nobody else uses the tier any more. */
void spw_migrate_destroy(struct spw_migrate *tier);

/* The program has waited for the device: brings back from the host what has room on it. Cheap when
 * nothing is on the host. */
void spw_migrate_rest(struct spw_migrate *tier);

/* The program says that a step of what it repeats begins. Any thread, no lock. */
void spw_migrate_mark_step(struct spw_migrate *tier);

/* Whether host memory may be left, as far as is known already. Waits for nobody. */
bool spw_migrate_has_room(struct spw_migrate *tier);

/* Finds out now what can be found out only while no capture is open. */
void spw_migrate_prepare(struct spw_migrate *tier);

/* Whether the device can map chunks that are on the host; found out at the first call, which is
 * made when memory is short. */
bool spw_migrate_ready(struct spw_migrate *tier);

/* Tells the user once that `host_bytes` of what is asked for, or of older blocks that `moved`, are
 * on the host. */
void spw_migrate_announce(struct spw_migrate *tier, const struct spw_request *request,
                          uint64_t host_bytes, bool moved);

/* The driver has no memory for something that is not the pool's: moves blocks to the host, so that
 * trimming gives back memory. False when nothing was moved. */
bool spw_migrate_yield(struct spw_migrate *tier);

/* Whether it is of use to tell what the program does: memory was short before. No lock, as below.
 */
bool spw_migrate_watches(const struct spw_migrate *tier);

/* A block begins; one is about to end. */
void spw_migrate_allocated(struct spw_migrate *tier, uint64_t address, uint64_t bytes,
                           uint32_t site);
void spw_migrate_freed(struct spw_migrate *tier, uint64_t address);

/* Whether it is of use to know the stream of the next call, as it is of few. No lock. */
bool spw_migrate_follows(const struct spw_migrate *tier);

/* A call with these addresses in its arguments is about to be submitted to `stream` (NULL: not
 * known), and has not passed the gate yet: moves what will be used, and waits, not for long, for
 * what is on its way and used now. */
void spw_migrate_expect(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                        const struct spw_stream *stream, bool may_move);

/* The same call inside the gate, every address in its arguments known: once for each submission. A
 * `kernel` may find more in memory. */
void spw_migrate_use(struct spw_migrate *tier, const uint64_t *addresses, size_t count,
                     bool kernel);

/* The same of a call that may use anything else besides. */
void spw_migrate_use_among(struct spw_migrate *tier, const uint64_t *addresses, size_t count);

/* The same call is of a kernel that was never launched before; to be told first. */
void spw_migrate_meet_kernel(struct spw_migrate *tier);

/* Allocates what the pool has refused with `refused`: makes room on the device, or takes the host.
 * Answers `refused` when there is none either. */
enum spw_err spw_migrate_alloc(struct spw_migrate *tier, const struct spw_request *request,
                               enum spw_err refused, struct spw_result *ret_result);
