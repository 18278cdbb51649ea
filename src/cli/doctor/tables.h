/* The doctor's tests and measurements. Most add a table to the report. A measurement that
 * fails is a row with the error. One thread. */
#pragma once

#include <stdbool.h>

#include "cli/doctor/cuda_api.h"
#include "cli/doctor/report.h"
#include "system/clock.h"

enum { SPW_CLI_VERSION_TEXT = 64 };

/* The full version of the driver's library, from its file's name ("535.309.01"), and the version of
 * the loaded kernel module. False, with "not known" as the text, if the version is not found. */
bool spw_cli_doctor_library_version(const struct spw_cli_cuda *cuda,
                                    char ret_text[SPW_CLI_VERSION_TEXT]);
bool spw_cli_doctor_module_version(char ret_text[SPW_CLI_VERSION_TEXT]);

/* "driver": the library's file, the versions of the library, the kernel module and CUDA, and the
 * number of devices. "functions": the number of functions that the driver has, and the number and
 * names of missing ones by the version of CUDA that introduced them. Both need no device. */
void spw_cli_doctor_driver(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);
void spw_cli_doctor_functions(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* "devices", with a test of chunks on each device. False when chunks of device memory fail on a
 * device, which spillway then cannot serve. */
bool spw_cli_doctor_devices(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* "spill": the kind of host memory that each device can use, and missing parts. */
void spw_cli_doctor_spill(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* "entry_points": allocates and frees through each entry point of the driver and the runtime, each
 * in a child process under spillway. True when every entry point that exists was served. */
bool spw_cli_doctor_entry_points(struct spw_cli_report *report);

/* "disabled": the settings and properties of this machine that disable spillway, or parts of it. */
void spw_cli_doctor_disabled(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* For a machine that has the driver's library but no usable device: "missing", with possible causes
 * and remedies, and "open", with the properties that only a device shows. `result` is cuInit's. */
void spw_cli_doctor_without_device(const struct spw_cli_cuda *cuda, CUresult result,
                                   struct spw_cli_report *report);

/* ---- the device's context must be current ---- */

/* Test memory: chunks at `place` (create, map, write, read, unmap), and page-locked host memory
 * that the device accesses in place. True when all calls worked and the content is right. `verdict`
 * gets "work ...", or "no: " and the call that failed. */
bool spw_cli_doctor_probe(const struct spw_cli_cuda *cuda, CUdevice device,
                          struct spw_cli_place place, char *verdict, size_t capacity);
bool spw_cli_doctor_probe_pinned(const struct spw_cli_cuda *cuda, char *verdict, size_t capacity);

/* The kernels as PTX text, which the driver compiles for the device; the simulated GPU knows them
 * by name. spw_spin(uint32_t *flag) runs until *flag is not 0. spw_read(const uint4 *from, uint64_t
 * count, uint32_t *sink) reads `count` elements and writes *sink only if their sum has one certain
 * value. */
extern const char spw_cli_kernels[];

/* The monotonic clock, in microseconds. */
static inline double spw_cli_now_us(void)
{
    return (double)spw_clock_ns() / 1e3;
}

/* Four tables: the times of the calls for virtual memory management (VMM) on one chunk, by size,
 * and on many chunks in one range; each for device memory and for host memory. */
void spw_cli_doctor_measure_vmm(const struct spw_cli_cuda *cuda, CUdevice device,
                                struct spw_cli_report *report);

/* "copies": copies between page-locked host memory and the device, one way and both at once. */
void spw_cli_doctor_measure_copies(const struct spw_cli_cuda *cuda, struct spw_cli_report *report);

/* "kernel_reads": how fast a kernel, spw_read of `module`, reads device and host memory. */
void spw_cli_doctor_measure_reads(const struct spw_cli_cuda *cuda, CUdevice device, CUmodule module,
                                  struct spw_cli_report *report);

/* "beside_kernel": the time of memory calls while a kernel, spw_spin of `module`, runs. Starts a
 * thread that ends the kernel after 200 ms, because a call may wait for the kernel. */
void spw_cli_doctor_measure_concurrency(const struct spw_cli_cuda *cuda, CUdevice device,
                                        CUmodule module, struct spw_cli_report *report);
