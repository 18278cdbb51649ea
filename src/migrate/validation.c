#include "migrate/validation.h"

enum {
    PERIODS = 2,      /* for which audits must have found nothing */
    LEAST_AUDITS = 4, /* that must have been made in them */
    AUDIT_EVERY = 16, /* moves, of which one is audited although arguments are believed */
    TRIES = 4,        /* first copies in vain after which none is made */
    RETRY_EVERY = 16  /* moves, for one of which it is tried again */
};

bool spw_migrate_validation_begin(struct spw_validation *evidence,
                                  const struct spw_predictor_course *course)
{
    uint32_t *in_vain = &evidence->in_vain[course != NULL];

    evidence->foreseen = course != NULL;
    evidence->begun = course != NULL ? course->events : 0;
    if (evidence->refuted && evidence->foreseen) {
        return false;
    }
    if (*in_vain < TRIES) {
        return true;
    }
    ++*in_vain;
    return *in_vain % RETRY_EVERY == 0;
}

enum spw_validation_worth spw_migrate_validation_weigh(const struct spw_validation *evidence,
                                                       const struct spw_predictor_course *course)
{
    if (evidence->refuted || !evidence->foreseen || course->period == 0) {
        return SPW_VALIDATION_NONE;
    }
    /* What came unforeseen, or began amid that, was never audited; nor was what is about another
     * order. */
    if (course->surprise >= evidence->begun || course->since != evidence->since ||
        evidence->audits < LEAST_AUDITS ||
        course->events - course->since < PERIODS * course->period ||
        evidence->unaudited >= AUDIT_EVERY - 1) {
        return SPW_VALIDATION_AUDIT;
    }
    return SPW_VALIDATION_BELIEF;
}

void spw_migrate_validation_note(struct spw_validation *evidence,
                                 const struct spw_predictor_course *course,
                                 enum spw_validation_finding finding)
{
    uint32_t *in_vain = &evidence->in_vain[evidence->foreseen];

    *in_vain = finding == SPW_VALIDATION_IN_VAIN ? *in_vain + 1 : 0;
    if (finding == SPW_VALIDATION_CLEAN) {
        evidence->audits = course->since == evidence->since ? evidence->audits + 1 : 1;
        evidence->since = course->since;
        evidence->unaudited = 0;
    } else if (finding == SPW_VALIDATION_BELIEVED) {
        evidence->unaudited++;
        evidence->believed++;
    } else if (finding == SPW_VALIDATION_WRONG) {
        evidence->refuted = true;
    }
}
