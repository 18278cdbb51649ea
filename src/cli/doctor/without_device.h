/* What the doctor tells of a machine that has the driver's library but no device that it can use.
 */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Adds the tables "missing", what may be the cause and what to do, and "open", the questions that
 * only a device answers. `result` is what cuInit returned. */
void spw_cli_doctor_without_device(const struct spw_cli_cuda *cuda, CUresult result,
                                   struct spw_cli_report *report);
