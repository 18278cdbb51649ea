/* The bandwidth of copies, and of a kernel that reads device and host memory. The device's context
 * must be current. A measurement that fails is a row with the error. */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Measures copies between page-locked host memory and the device, one way and both at once; adds
 * the table "copies". */
void spw_cli_doctor_measure_copies(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Measures how fast a kernel reads device memory and host memory; adds the table "kernel_reads".
 * `module` holds the kernel spw_read (kernels.h). */
void spw_cli_doctor_measure_reads(const struct spw_cli_cuda *cuda, CUdevice device, CUmodule module,
                                  struct spw_cli_report *report);
