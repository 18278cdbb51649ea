/* Reports the functions that spillway intercepts or calls, and that this driver has or lacks. */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Adds the table "functions": the number of functions that the driver has, and the number and names
 * of missing ones by the version of CUDA that introduced them. Needs no device. */
void spw_cli_doctor_functions(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
