/* The doctor's tables for a machine that has the driver's library but no usable device. */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Adds the tables "missing", with possible causes and remedies, and "open", with the properties
 * that only a device shows. `result` is cuInit's. */
void spw_cli_doctor_without_device(const struct spw_cli_cuda *cuda, CUresult result,
                                   struct spw_cli_report *report);
