/* Replaces the chunks of a block by chunks that other processes can map, while the program runs.
 * The block keeps its addresses.
 *
 * This is a migration from the device to itself (pool/export.h). It always holds submissions back
 * while it copies. A step waits for an idle device, closes the submit barrier, waits again, copies,
 * switches, and opens the barrier. Every wait is bounded, because the device may itself wait for a
 * submission.
 *
 * Locking: one thread at a time. The tier's lock and the pool's lock are taken inside. The pool's
 * lock is never held during a wait. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/err.h"
#include "migrate/migrate.h"
#include "pool/pool.h"

struct spw_exporter {
    struct spw_pool *pool;
    struct spw_migrate *tier; /* NULL: nothing spills */
    struct spw_counters *counters;
    uint64_t wait_ns; /* longest time that submissions are held back for the device to idle */
};

/* Replaces the chunks of the block with this address and id, except chunks that other processes can
 * already map. Errors: those of spw_pool_export_begin; SPW_E_AGAIN if the device never became
 * idle. */
enum spw_err spw_migrate_export(const struct spw_exporter *exporter, uint64_t address, uint64_t id);
