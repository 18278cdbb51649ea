/* The processes of a run that a choice is about: one, or all ranks of a job. One thread. */
#pragma once

#include <stddef.h>

#include "cli/verdict/sim_result.h"
#include "common/bounds.h"

enum { SPW_CLI_KEEP_MEMBERS = SPW_DEVICES_MAX, SPW_CLI_KEEP_NO_MEMBERS = 160 };

struct spw_cli_keep_member {
    const struct spw_cli_sim_device *device; /* of its devices, the one with the highest peak */
    const char *recording;                   /* NULL: there is none */
};

/* Finds them in a result. Returns their number, or 0 with the reason why no choice can be about
 * the processes of this run. */
size_t spw_cli_keep_members(const struct spw_cli_sim_result *result,
                            struct spw_cli_keep_member ret_members[SPW_CLI_KEEP_MEMBERS],
                            char why[SPW_CLI_KEEP_NO_MEMBERS]);
