/* Finds settings and properties of the machine that disable spillway, or parts of it. */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Adds the table "disabled" to the report: each cause on this machine, and its effect. */
void spw_cli_doctor_disabled(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
