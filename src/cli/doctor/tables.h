/* The doctor's tests and measurements. Most functions add a table to the report. If a measurement
 * fails, its row contains the error. One thread. */
#pragma once

#include <stdbool.h>

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"
#include "system/clock.h"

enum { SPW_CLI_VERSION_TEXT = 64 };

/* Find versions such as "535.309.01". _library_version writes the full version of the driver's
 * library, from the name of its file. _module_version writes the version of the loaded kernel
 * module. If the version is not found, they write "not known" and return false. */
bool spw_cli_doctor_library_version(const struct spw_cli_cuda *cuda,
                                    char ret_text[SPW_CLI_VERSION_TEXT]);
bool spw_cli_doctor_module_version(char ret_text[SPW_CLI_VERSION_TEXT]);

/* _driver adds the table "driver": the library's file, the versions of the library, the kernel
 * module and CUDA, and the number of devices. _functions adds the table "functions": the number of
 * intercepted functions that the driver has, and the number and names of missing functions, grouped
 * by the CUDA version that introduced them. Both work without a device. */
void spw_cli_doctor_driver(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
void spw_cli_doctor_functions(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "devices", which includes a test of chunks on each device. Returns false if chunks
 * of device memory fail on a device. spillway cannot serve such a device. */
bool spw_cli_doctor_devices(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "spill": the kind of host memory that each device can use, and missing parts. A
 * device without memory of its own uses none. */
void spw_cli_doctor_spill(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "host_limits": the limits on the host memory for blocks that do not fit, and the
 * smallest of them for one device. Locks memory for a moment, to find out how much can be. */
void spw_cli_doctor_host_limits(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "entry_points". Each entry point of the driver and the runtime is tested in a
 * child process under spillway, which allocates and frees through it. Returns true if spillway
 * served every entry point that exists. */
bool spw_cli_doctor_entry_points(struct spw_cli_report *report);

/* Adds the table "disabled": the settings and properties of this machine that disable spillway or
 * parts of it. */
void spw_cli_doctor_disabled(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the tables for a machine that has the driver's library but no usable device. The table
 * "missing" lists possible causes and remedies. The table "open" lists the properties that cannot
 * be tested without a device. `result` is the result of cuInit. */
void spw_cli_doctor_without_device(const struct spw_cli_cuda *cuda, CUresult result,
                                   struct spw_cli_report *report);

/* ---- the device's context must be current ---- */

/* Test memory. _probe tests chunks at `place` (create, map, write, read, unmap). _probe_pinned
 * tests page-locked host memory that the device accesses in place. They return true if all calls
 * succeeded and the content is correct. They write to `verdict` "work ...", or "no: " and the call
 * that failed. */
bool spw_cli_doctor_probe(const struct spw_cli_cuda *cuda, CUdevice device,
                          struct spw_cli_place place, char *verdict, size_t capacity);
bool spw_cli_doctor_probe_pinned(const struct spw_cli_cuda *cuda, char *verdict, size_t capacity);

/* The kernels, as PTX text. The driver compiles the text for the device. The simulated GPU knows
 * the kernels by name. spw_spin(uint32_t *flag) runs until *flag is not 0. spw_read(const uint4
 * *from, uint64_t count, uint32_t *sink) reads `count` elements. It writes *sink only if the sum of
 * the elements has one particular value. */
extern const char spw_cli_kernels[];

/* Returns the time of the monotonic clock, in microseconds. */
static inline double spw_cli_now_us(void)
{
    return (double)spw_clock_ns() / 1e3;
}

/* Adds four tables with the times of the calls for virtual memory management (VMM). Two tables
 * measure calls on one chunk, by size. Two tables measure calls on many chunks in one range. One
 * table of each pair is for device memory, and the other is for host memory. */
void spw_cli_doctor_measure_vmm(const struct spw_cli_cuda *cuda, CUdevice device,
                                struct spw_cli_report *report);

/* Adds the table "copies": the bandwidth of copies between page-locked host memory and the device,
 * in one direction and in both directions at once. */
void spw_cli_doctor_measure_copies(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* Adds the table "kernel_reads": the bandwidth of the kernel spw_read in `module` when it reads
 * device memory and host memory. */
void spw_cli_doctor_measure_reads(const struct spw_cli_cuda *cuda, CUdevice device, CUmodule module,
                                  struct spw_cli_report *report);

/* Adds the table "beside_kernel": the time of memory calls while the kernel spw_spin in `module`
 * runs. Because a call may wait for the kernel, a thread ends the kernel after 200 ms. */
void spw_cli_doctor_measure_concurrency(const struct spw_cli_cuda *cuda, CUdevice device,
                                        CUmodule module, struct spw_cli_report *report);
