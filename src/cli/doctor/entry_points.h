/* The test that spillway serves every entry point of the driver and the runtime. */
#pragma once

#include <stdbool.h>

#include "cli/doctor/report.h"

/* Allocates and frees through each entry point, each in a child process under spillway, and adds
 * the table "entry_points" to the report. True when every entry point that exists was served. */
bool spw_cli_doctor_entry_points(struct spw_cli_report *report);
