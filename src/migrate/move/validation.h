/* Write validation: decides for each migration if its content must be copied a second time.
 *
 * A migration copies its content while the program runs (pre-copy). A kernel that is submitted
 * during the copy may write that content. The kernel's arguments name the blocks that it uses, but
 * a kernel can also find addresses in memory, so the arguments do not prove that the content is
 * unchanged. It is safe, but slow, to copy all of it again while submissions are held back.
 *
 * Validation samples the program instead. While the predictor follows one repetition, every
 * migration whose granules no argument named is audited: its content is copied again and compared
 * with the first copy. After enough audits without a difference (two periods, at least four
 * audits), second copies are skipped, except for one audit in sixteen migrations. A difference
 * proves a write through a pointer that is not an argument. From then on no second copy is skipped,
 * and no migration ahead of use is pre-copied. A change of the repetition, or the first launch of a
 * kernel, restarts the sampling.
 *
 * This is sampling, not a proof. If a validated kernel begins to write through hidden pointers, the
 * next audit detects this. Migrations since the audit before may then have lost writes.
 *
 * Validation also decides if pre-copying is worth while: when the last pre-copies were all wasted,
 * most of the next ones are left out.
 *
 * Pure; no locking: the caller serialises migrations. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "migrate/learn/predictor.h"

struct spw_validation {
    bool violated;         /* an audit failed: a kernel wrote through a hidden pointer */
    uint64_t stable_since; /* identifies a repetition (spw_predictor_status) */
    uint32_t audits;       /* audits passed in a row within that repetition */
    uint32_t unaudited;    /* second copies skipped since the last audit */
    uint64_t skipped;      /* second copies skipped in total */
    bool predicted;        /* the current migration was planned from predictions */
    uint64_t began_at;     /* event number at the start of the current migration */
    uint32_t wasted[2];    /* wasted pre-copies in a row: [0] unpredicted, [1] predicted */
};

/* How to treat a pre-copy if no argument has named its granules since. */
enum spw_recopy_policy {
    SPW_RECOPY_ALWAYS,      /* copy again */
    SPW_RECOPY_AND_COMPARE, /* copy again, and compare: an audit */
    SPW_RECOPY_SKIP,        /* validated: use the pre-copy */
};

/* The outcome of a migration's pre-copy. */
enum spw_precopy_outcome {
    SPW_PRECOPY_WASTED,         /* the content was, or may have been, written since */
    SPW_PRECOPY_USEFUL,         /* no work that could write was submitted since */
    SPW_PRECOPY_AUDIT_PASSED,   /* the two copies are equal */
    SPW_PRECOPY_AUDIT_FAILED,   /* the two copies differ */
    SPW_PRECOPY_RECOPY_SKIPPED, /* the pre-copy was used without a second copy */
};

/* Begins a migration. `status` is the predictor's status if the migration was planned from
 * predictions, otherwise NULL. True when a pre-copy is worth while. */
bool spw_migrate_validation_begin(struct spw_validation *validation,
                                  const struct spw_predictor_status *status);

/* The policy for the current migration, given the predictor's status now. */
enum spw_recopy_policy
spw_migrate_validation_recopy_policy(const struct spw_validation *validation,
                                     const struct spw_predictor_status *status);

/* Records the outcome of the current migration. `status` is as in spw_migrate_validation_begin; it
 * is read only for a passed audit. */
void spw_migrate_validation_record(struct spw_validation *validation,
                                   const struct spw_predictor_status *status,
                                   enum spw_precopy_outcome outcome);
