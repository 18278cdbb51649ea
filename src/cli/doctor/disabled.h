/* Settings and machines under which spillway does nothing, or less than it could. */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Adds the table "disabled" to the report: each cause found here, and its effect. */
void spw_cli_doctor_disabled(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
