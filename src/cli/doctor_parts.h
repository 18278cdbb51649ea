/* The parts of `spillway doctor`. Each fills tables of the report; a context of the device in
 * question is current where a part says so. */
#pragma once

#include <stdbool.h>

#include "cli/cuda_api.h"
#include "cli/report.h"

/* Whether chunks at `place` can be created, mapped, written, read and unmapped by `device`, tried
 * for real. Writes "works" or the call that failed to `verdict`. The device's context is current.
 */
bool spw_doctor_probe(const struct spw_cuda *cuda, CUdevice device, struct spw_place place,
                      char *verdict, size_t capacity);

/* The same for page-locked memory of the host that the device reaches where it is. */
bool spw_doctor_probe_pinned(const struct spw_cuda *cuda, char *verdict, size_t capacity);

/* Makes an allocation through every door, each in a child of its own under spillway, and reports
 * which of them the pool served. False when one that is there was not served. */
bool spw_doctor_doors(struct spw_report *report);

/* Reports what in this environment would make spillway serve less than it could. */
void spw_doctor_aside(const struct spw_cuda *cuda, struct spw_report *report);

/* Measure on `device`, whose context is current. What cannot be measured is a row that says why. */

/* The cost of each call on chunks, by size, and on many chunks in one range. */
void spw_doctor_measure_vmm(const struct spw_cuda *cuda, CUdevice device,
                            struct spw_report *report);

/* Whether memory calls wait for a running kernel; `module` holds spw_spin. */
void spw_doctor_measure_beside(const struct spw_cuda *cuda, CUdevice device, CUmodule module,
                               struct spw_report *report);

/* Copies between page-locked memory and the device, one way and both at once. */
void spw_doctor_measure_copies(const struct spw_cuda *cuda, struct spw_report *report);

/* How fast a kernel reads device memory and host memory; `module` holds spw_read. */
void spw_doctor_measure_reads(const struct spw_cuda *cuda, CUdevice device, CUmodule module,
                              struct spw_report *report);
