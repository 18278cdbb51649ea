/* Gives a block chunks that other processes can map, at the same addresses, while the program runs.
 *
 * This is a migration from the device to itself (pool/export.h), and always holds submissions back
 * while it copies. A step waits for an idle device, closes the submit barrier, waits again, copies,
 * switches, and opens the barrier. Every wait is bounded, since the device may wait for a
 * submission.
 *
 * Locking: one thread at a time. The tier's lock and the pool's are taken inside; the pool's is
 * never held while waiting. */
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

/* Gives the block with this address and id such chunks, except for parts that already have them.
 * Errors as of spw_pool_export_begin; SPW_E_AGAIN: the device never became idle. */
enum spw_err spw_migrate_export(const struct spw_exporter *exporter, uint64_t address, uint64_t id);
