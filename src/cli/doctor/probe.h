/* Tests of the driver's memory calls. Each makes the calls, writes to the memory and checks the
 * content. The device's context must be current. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/doctor/cuda_api.h"

/* Tests chunks of memory at `place`: create, map, write, read, unmap. True when all worked.
 * `verdict` gets "work ...", or "no: " and the call that failed. */
bool spw_cli_doctor_probe(const struct spw_cli_cuda *cuda, CUdevice device,
                          struct spw_cli_place place, char *verdict, size_t capacity);

/* Tests page-locked host memory that the device accesses in place, with the same results. */
bool spw_cli_doctor_probe_pinned(const struct spw_cli_cuda *cuda, char *verdict, size_t capacity);
