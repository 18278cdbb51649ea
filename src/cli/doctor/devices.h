/* The driver and its devices, and where memory goes when a device is full. */
#pragma once

#include <stdbool.h>

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

enum { SPW_CLI_VERSION_TEXT = 64 };

/* The whole version of the driver's library, from its file's name ("535.309.01"), and that of the
 * loaded kernel module. False, and "not known", if there is none. */
bool spw_cli_doctor_library_version(const struct spw_cli_cuda *cuda,
                                    char ret_text[SPW_CLI_VERSION_TEXT]);
bool spw_cli_doctor_module_version(char ret_text[SPW_CLI_VERSION_TEXT]);

/* Adds the table "driver": the library's file, its version and that of the kernel module, the
 * version of CUDA, the number of devices. Needs no device. */
void spw_cli_doctor_driver(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "devices", with a test of chunks on each device. False when chunks of device
 * memory do not work on one of them: spillway cannot serve it then. */
bool spw_cli_doctor_devices(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "spill": which kind of host memory each device can use, and what is missing. */
void spw_cli_doctor_spill(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
