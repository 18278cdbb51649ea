/* Measures the time of the driver's calls for virtual memory management (VMM). */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Times each call on one chunk, by size, and on many chunks in one range; adds four tables to the
 * report. The device's context must be current. A measurement that fails is a row with the error.
 */
void spw_cli_doctor_measure_vmm(const struct spw_cli_cuda *cuda, CUdevice device,
                                struct spw_cli_report *report);
