/* Measures which memory calls wait for a running kernel. */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Times memory calls while a kernel runs, and adds the table "beside_kernel" to the report.
 * `module` holds the kernel spw_spin (kernels.h). The device's context must be current. Starts a
 * thread that ends the kernel after 200 ms, because a call may wait for it. */
void spw_cli_doctor_measure_concurrency(const struct spw_cli_cuda *cuda, CUdevice device,
                                        CUmodule module, struct spw_cli_report *report);
