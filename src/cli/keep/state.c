#include "cli/keep/state.h"

#include "common/minmax.h"

#include <inttypes.h>
#include <stdio.h>

enum { TOLERANCE = 50 }; /* a part of the budget, for gaps between blocks */

void spw_cli_keep_state_write(const struct spw_cli_keep_state *state,
                              char ret_text[SPW_CLI_KEEP_STATE])
{
    (void)snprintf(ret_text, SPW_CLI_KEEP_STATE,
                   "state: content=%016" PRIx64 " budget=%" PRIu64 " peak=%" PRIu64
                   " spills=%" PRIu64 " lacked=%" PRIu64 " failures=%u code=%d",
                   state->content, state->budget_bytes, state->device_bytes, state->spilled_bytes,
                   state->lacked_bytes, state->failures, state->code);
}

bool spw_cli_keep_state_read(const char *text, struct spw_cli_keep_state *ret_state)
{
    struct spw_cli_keep_state state = {0};

    if (sscanf(text,
               "state: content=%16" SCNx64 " budget=%" SCNu64 " peak=%" SCNu64 " spills=%" SCNu64
               " lacked=%" SCNu64 " failures=%u code=%d",
               &state.content, &state.budget_bytes, &state.device_bytes, &state.spilled_bytes,
               &state.lacked_bytes, &state.failures, &state.code) != 7) {
        return false;
    }
    *ret_state = state;
    return true;
}

enum spw_cli_keep_verdict spw_cli_keep_judge(const struct spw_cli_keep_state *state,
                                             const struct spw_cli_keep_run *run,
                                             uint64_t *ret_lacked)
{
    uint64_t allowed = state->spilled_bytes + state->budget_bytes / TOLERANCE;

    *ret_lacked = 0;
    if (run->refused_bytes > 0) {
        *ret_lacked = run->refused_bytes;
        return SPW_CLI_KEEP_REFUSED;
    }
    if (run->outcome == SPW_CLI_SIM_FAILED && run->code != state->code) {
        return SPW_CLI_KEEP_FAILED;
    }
    if (state->device_bytes > 0 && run->spilled_bytes > allowed) {
        *ret_lacked = run->spilled_bytes - state->spilled_bytes;
        return SPW_CLI_KEEP_SPILLED;
    }
    return SPW_CLI_KEEP_GOOD;
}

uint64_t spw_cli_keep_ample_ns(const struct spw_cli_keep_times *times)
{
    uint64_t lost = spw_max(times->held, times->spilling);

    return spw_max(times->kernels, times->measured > lost ? times->measured - lost : 0);
}
