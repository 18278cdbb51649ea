/* Writes the record (sim/record.h). The launcher reads it to decide whether a program fits.
 *
 * No function fails. Before cuInit, and without a launcher, the record is kept in private memory.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"
#include "sim/driver/core/functions.h"
#include "sim/record.h"

/* Begins the record that the launcher reads. Must be called when CUDA has been initialised. */
void sim_run_record_start(void);

/* Marks the record as incomplete, with a reason for the verdict, and writes a line to stderr. */
void sim_run_record_fail(const char *why);

/* Detaches from the parent's record. Must be called in a child after fork. */
void sim_run_record_forget(void);

/* Records that the simulator refused NVIDIA's runtime, which is linked into the file at `path`. */
void sim_run_record_runtime(const char *path);

/* Mark the beginning and the end of a call. Between them, the same thread describes the call with
 * the functions below. */
void sim_run_record_begin(void);
void sim_run_record_end(enum sim_fn fn, CUresult result);

/* Records that the call asks for `bytes` bytes of the device's memory, or of host memory if
 * `device` is NULL. */
void sim_run_record_asked(const struct sim_device *device, size_t bytes);

/* Records that the call needs `bytes` more bytes, and that `missing` of them are not free on the
 * device, or on the host if `device` is NULL. */
void sim_run_record_lacked(const struct sim_device *device, size_t bytes, size_t missing);

/* Records that the device's used bytes have changed. The driver's own bytes have changed by `own`.
 */
void sim_run_record_used(const struct sim_device *device, int64_t own);

/* Records that the host's side of the process takes `host` bytes now. */
void sim_run_record_together(const struct sim_device *device, uint64_t host);

/* Records that the machine died, because its one memory lacked `missing` bytes. */
void sim_run_record_died(const struct sim_device *device, uint64_t missing);

/* Records that the overhead of the device (SPILLWAY_SIM_OVERHEAD) is now `bytes`. */
void sim_run_record_overhead(const struct sim_device *device, size_t bytes);

/* Changes of the NCCL values in the record (sim/record.h). */
struct sim_run_record_nccl {
    int64_t communicators, bytes, most_bytes, taken_bytes;
    int ranks; /* of the communicator */
};

/* Records a change of the memory that NCCL would hold on a real card. */
void sim_run_record_nccl(const struct sim_device *device, const struct sim_run_record_nccl *change);

/* Records that the program holds `bytes` more bytes of the device's memory, or fewer if `bytes` is
 * negative. */
void sim_run_record_held(const struct sim_device *device, int64_t bytes);

/* Records a kernel launch. `computes`: true if the simulator computes the kernel's results. */
void sim_run_record_launched(const struct sim_device *device, enum spw_layout layout,
                             bool computes);

/* Records that work of a device has ended at the simulated time `end_ns`. If the work was a kernel,
 * the kernel read `in_bytes` bytes of host memory and wrote `out_bytes` bytes of host memory. */
void sim_run_record_ran(int ordinal, bool kernel, uint64_t end_ns, uint64_t in_bytes,
                        uint64_t out_bytes);

/* Records the last step of the program on a device. */
void sim_run_record_step(int ordinal, const struct sim_record_step *step);

/* Records that the simulated cuDNN named engines for a graph, or guessed one. `search`: the program
 * asked for the engines that are otherwise left out. */
void sim_run_record_engines(const struct sim_device *device, bool guessed, bool search);

/* Records that SPILLWAY_SIM_UNKNOWN chose a size that the simulator does not know. */
void sim_run_record_chosen(int ordinal);

/* Records that the host reads `bytes` bytes of the device's memory. `is_known`: true if the content
 * of these bytes is known (memory/known.h). */
void sim_run_record_read(int ordinal, size_t bytes, bool is_known);
