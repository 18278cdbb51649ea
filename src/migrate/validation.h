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

struct spw_evidence {
    bool refuted;         /* somebody wrote without naming it */
    uint64_t since;       /* the event since which the order is followed that audits are about */
    uint32_t audits;      /* since then, which found nothing */
    uint32_t unaudited;   /* moves that were believed since the last audit */
    uint64_t believed;    /* in all */
    bool foreseen;        /* the move under way follows the order */
    uint64_t begun;       /* the event it began at */
    uint32_t in_vain[2];  /* first copies in a row that were of no use; by `foreseen` */
};

/* What to do with a move of which no argument named anything since its copies began. */
enum spw_evidence_worth {
    SPW_EVIDENCE_NONE,   /* arguments prove nothing here */
    SPW_EVIDENCE_AUDIT,  /* the same, but it can be found out */
    SPW_EVIDENCE_BELIEF, /* they are believed */
};

/* How a move ended, or what was found out about it. */
enum spw_evidence_finding {
    SPW_EVIDENCE_IN_VAIN,  /* something named it, or may have: the first copy was of no use */
    SPW_EVIDENCE_OF_USE,   /* it was, without any evidence */
    SPW_EVIDENCE_CLEAN,    /* an audit found nothing */
    SPW_EVIDENCE_WRONG,    /* an audit found a difference */
    SPW_EVIDENCE_BELIEVED, /* and so was not copied again */
};

/* A move begins: how the order of use goes; NULL: it does not follow any order. Whether it is worth
 * while to copy while the program goes on. */
bool spw_evidence_begin(struct spw_evidence *evidence, const struct spw_order_course *course);

/* What the arguments are worth that are known of this move, as the order goes now. */
enum spw_evidence_worth spw_evidence_weigh(const struct spw_evidence *evidence,
                                           const struct spw_order_course *course);

/* A finding about the move under way, while the order goes like this; NULL: it follows none. */
void spw_evidence_note(struct spw_evidence *evidence, const struct spw_order_course *course,
                       enum spw_evidence_finding finding);
