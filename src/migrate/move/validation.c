#include "migrate/move/validation.h"

#include "migrate/tuning.h"

bool spw_migrate_validation_begin(struct spw_validation *validation,
                                  const struct spw_predictor_status *status)
{
    uint32_t *wasted = &validation->wasted[status != NULL];

    validation->predicted = status != NULL;
    validation->began_at = status != NULL ? status->events : 0;
    if (validation->violated && validation->predicted) {
        return false;
    }
    if (*wasted < SPW_TUNE_MAX_WASTED_PRECOPIES) {
        return true;
    }
    ++*wasted;
    return *wasted % SPW_TUNE_PRECOPY_RETRY_INTERVAL == 0;
}

enum spw_recopy_policy
spw_migrate_validation_recopy_policy(const struct spw_validation *validation,
                                     const struct spw_predictor_status *status)
{
    if (validation->violated || !validation->predicted || status->period == 0) {
        return SPW_RECOPY_ALWAYS;
    }
    /* A misprediction since its beginning invalidates the plan of a migration, and audits of
     * another repetition do not count. */
    if (status->last_mispredict >= validation->began_at ||
        status->stable_since != validation->stable_since ||
        validation->audits < SPW_TUNE_VALIDATION_AUDITS ||
        status->events - status->stable_since < SPW_TUNE_VALIDATION_PERIODS * status->period ||
        validation->unaudited >= SPW_TUNE_AUDIT_INTERVAL - 1) {
        return SPW_RECOPY_AND_COMPARE;
    }
    return SPW_RECOPY_SKIP;
}

void spw_migrate_validation_record(struct spw_validation *validation,
                                   const struct spw_predictor_status *status,
                                   enum spw_precopy_outcome finding)
{
    uint32_t *wasted = &validation->wasted[validation->predicted];

    *wasted = finding == SPW_PRECOPY_WASTED ? *wasted + 1 : 0;
    if (finding == SPW_PRECOPY_AUDIT_PASSED) {
        validation->audits =
            status->stable_since == validation->stable_since ? validation->audits + 1 : 1;
        validation->stable_since = status->stable_since;
        validation->unaudited = 0;
    } else if (finding == SPW_PRECOPY_RECOPY_SKIPPED) {
        validation->unaudited++;
        validation->skipped++;
    } else if (finding == SPW_PRECOPY_AUDIT_FAILED) {
        validation->violated = true;
    }
}
