/* Evidence: what is known of whether the program's kernels write to nothing but what their
 * arguments name, so that what moves need not be copied once more with submissions held back.
 *
 * A kernel may find addresses in memory, so arguments alone prove nothing. But a program that
 * repeats itself can be watched: while the order of use is followed, moves of which no argument
 * named anything since their copies began are audited: copied again all the same, and compared. A
 * difference is a write that nobody named: arguments are never believed again. When nothing was
 * found for two periods of the order, they are believed, and one move in sixteen is audited still.
 * When another order is followed, or a kernel launched that never was before, the evidence is void,
 * and must be gathered anew.
 *
 * Evidence is no proof: a kernel that is known and begins to write so only later is found by the
 * next audit, too late for the moves since the last. Pure; no locking. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "migrate/predictor.h"

struct spw_validation {
    bool refuted;        /* somebody wrote without naming it */
    uint64_t since;      /* the event since which the order is followed that audits are about */
    uint32_t audits;     /* since then, which found nothing */
    uint32_t unaudited;  /* moves that were believed since the last audit */
    uint64_t believed;   /* in all */
    bool foreseen;       /* the move under way follows the order */
    uint64_t begun;      /* the event it began at */
    uint32_t in_vain[2]; /* first copies in a row that were of no use; by `foreseen` */
};

/* What to do with a move of which no argument named anything since its copies began. */
enum spw_validation_worth {
    SPW_VALIDATION_NONE,   /* arguments prove nothing here */
    SPW_VALIDATION_AUDIT,  /* the same, but it can be found out */
    SPW_VALIDATION_BELIEF, /* they are believed */
};

/* How a move ended, or what was found out about it. */
enum spw_validation_finding {
    SPW_VALIDATION_IN_VAIN,  /* something named it, or may have: the first copy was of no use */
    SPW_VALIDATION_OF_USE,   /* it was, without any evidence */
    SPW_VALIDATION_CLEAN,    /* an audit found nothing */
    SPW_VALIDATION_WRONG,    /* an audit found a difference */
    SPW_VALIDATION_BELIEVED, /* and so was not copied again */
};

/* A move begins: how the order of use goes; NULL: it does not follow any order. Whether it is worth
 * while to copy while the program goes on. */
bool spw_migrate_validation_begin(struct spw_validation *evidence,
                                  const struct spw_predictor_course *course);

/* What the arguments are worth that are known of this move, as the order goes now. */
enum spw_validation_worth spw_migrate_validation_weigh(const struct spw_validation *evidence,
                                                       const struct spw_predictor_course *course);

/* A finding about the move under way, while the order goes like this; NULL: it follows none. */
void spw_migrate_validation_note(struct spw_validation *evidence,
                                 const struct spw_predictor_course *course,
                                 enum spw_validation_finding finding);
