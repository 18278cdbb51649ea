/* The program's own: its streams, its physical memory, its allocations from the driver. It does not
 * know kernels.
 *
 *   ledger     allocations that the real driver made for the program
 *   mappings   physical memory that the program created and mapped
 *   peer       recognises copies that must be peer copies
 *   spans      a set of address ranges that do not overlap
 *   state      the tables of this folder
 *   stream     number, context and device of a stream
 *   users      contexts that work on a device's memory without an access right
 *
 * All zero bytes of a table is the state before the start.
 *
 * The comment of a table names the lock that guards it. Atomic members may be used without the
 * lock. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map.h"
#include "program/spans.h"

/* The streams that the program created: struct spw_stream_info by handle. Guarded by
 * spw_locks.streams. */
struct spw_streams {
    struct spw_map created;
    /* Rises when a stream or context is removed. Entries that threads have cached are then
     * invalid. */
    _Atomic uint64_t generation;
    _Atomic uint64_t numbered; /* streams that got their id here: an old driver gives none */
};

/* The ledger: struct spw_ledger_entry by address. Guarded by spw_locks.ledger. */
struct spw_ledger {
    struct spw_map entries;
};

/* The physical memory that the program creates itself. Guarded by spw_locks.mappings. */
struct spw_mappings {
    struct spw_map pieces;    /* struct spw_piece by handle */
    struct spw_map mappings;  /* by address */
    struct spw_spans spilled; /* where spilled pieces are mapped */
    _Atomic size_t spilled_count;
};

struct spw_program {
    struct spw_streams streams;
    struct spw_ledger ledger;
    struct spw_mappings mappings;
};

extern struct spw_program spw_program;
