/* The driver and its devices, and where memory goes when a device is full. */
#pragma once

#include <stdbool.h>

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"

/* Adds the table "driver": the library's file, the API version, the number of devices. */
void spw_cli_doctor_driver(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "devices", with a test of chunks on each device. False when chunks of device
 * memory do not work on one of them: spillway cannot serve it then. */
bool spw_cli_doctor_devices(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "spill": which kind of host memory each device can use, and what is missing. */
void spw_cli_doctor_spill(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
