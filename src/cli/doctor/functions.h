/* Which of the driver's functions that spillway stands in front of, or calls, this driver has. */
#pragma once

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Adds the table "functions": for each version of CUDA that brought functions which this driver
 * lacks, their number and names, and how many the driver has. Needs no device. */
void spw_cli_doctor_functions(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
