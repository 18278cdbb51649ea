/* Tables about the driver, its devices, and the host memory that a full device spills to. */
#pragma once

#include <stdbool.h>

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

enum { SPW_CLI_VERSION_TEXT = 64 };

/* The full version of the driver's library, from its file's name ("535.309.01"), and the version of
 * the loaded kernel module. False, and "not known", if there is none. */
bool spw_cli_doctor_library_version(const struct spw_cli_cuda *cuda,
                                    char ret_text[SPW_CLI_VERSION_TEXT]);
bool spw_cli_doctor_module_version(char ret_text[SPW_CLI_VERSION_TEXT]);

/* Adds the table "driver": the library's file, the versions of the library, the kernel module and
 * CUDA, and the number of devices. Needs no device. */
void spw_cli_doctor_driver(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "devices", with a test of chunks on each device. False when chunks of device
 * memory fail on a device, which spillway then cannot serve. */
bool spw_cli_doctor_devices(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "spill": the kind of host memory that each device can use, and missing parts. */
void spw_cli_doctor_spill(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
