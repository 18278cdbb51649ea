/* Write validation: decides for each migration if its content must be copied a second time.
 *
 * A migration copies its content while the program runs (pre-copy). A kernel that is submitted
 * meanwhile may write to that content. Its arguments name the blocks it uses, but a kernel can also
 * find addresses in memory, so the arguments alone do not prove that nothing was written. Copying
 * everything again while submissions are held back is safe and slow.
 *
 * Validation samples the program instead. While one repetition is followed, every migration that no
 * argument named is audited: copied again and compared with the first copy. After enough audits
 * without a difference (two periods, at least four audits) the second copy is skipped, and one
 * migration in sixteen is audited still. A difference proves a write through a pointer that is not
 * an argument: from then on nothing is skipped and nothing is pre-copied ahead of use. A change of
 * the repetition, or a kernel that was never launched before, starts the sampling anew.
 *
 * This is sampling and not a proof. A kernel that begins to write through hidden pointers after it
 * was validated is found by the next audit, too late for the migrations since the last one.
 *
 * It also decides if pre-copying is worth while: when the last pre-copies were all wasted, most are
 * left out.
 *
 * Pure; no locking: the caller serialises migrations. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "migrate/predictor.h"

struct spw_validation {
    bool violated;         /* an audit failed: a kernel wrote through a hidden pointer */
    uint64_t stable_since; /* the repetition that `audits` is about (spw_predictor_status) */
    uint32_t audits;       /* passed in a row within it */
    uint32_t unaudited;    /* migrations since the last audit whose second copy was skipped */
    uint64_t skipped;      /* second copies skipped in all */
    bool predicted;        /* the current migration was planned from predictions */
    uint64_t began_at;     /* event number at which the current migration began */
    uint32_t wasted[2];    /* wasted pre-copies in a row: [0] unpredicted, [1] predicted */
};

/* How to treat the pre-copy of a migration that no argument has named since. */
enum spw_recopy_policy {
    SPW_RECOPY_ALWAYS,      /* copy again */
    SPW_RECOPY_AND_COMPARE, /* copy again, and compare: an audit */
    SPW_RECOPY_SKIP,        /* validated: use the pre-copy */
};

/* How the pre-copy of a migration turned out. */
enum spw_precopy_outcome {
    SPW_PRECOPY_WASTED,         /* the content was, or may have been, written to since */
    SPW_PRECOPY_USEFUL,         /* nothing that could write was submitted since */
    SPW_PRECOPY_AUDIT_PASSED,   /* both copies are equal */
    SPW_PRECOPY_AUDIT_FAILED,   /* they differ */
    SPW_PRECOPY_RECOPY_SKIPPED, /* used without a second copy */
};

/* Begins a migration. `status` is that of the predictor when the migration was planned from its
 * predictions, else NULL. True when it is worth while to pre-copy. */
bool spw_migrate_validation_begin(struct spw_validation *validation,
                                  const struct spw_predictor_status *status);

/* The policy for the current migration, given the predictor's status now. */
enum spw_recopy_policy
spw_migrate_validation_recopy_policy(const struct spw_validation *validation,
                                     const struct spw_predictor_status *status);

/* Records the outcome of the current migration. `status` as at the beginning; read only for a
 * passed audit. */
void spw_migrate_validation_record(struct spw_validation *validation,
                                   const struct spw_predictor_status *status,
                                   enum spw_precopy_outcome outcome);
