/* Writes the record (sim/record.h). The launcher reads it to decide whether a program fits.
 *
 * No function here fails: before cuInit, and without a launcher, the record is in private memory.
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

/* To be called when CUDA was initialised: begins the record that the launcher reads. */
void sim_run_record_start(void);

/* Marks the record as incomplete, with a reason for the verdict, and writes a line to stderr. */
void sim_run_record_fail(const char *why);

/* To be called in a child after fork: detaches from the parent's record. */
void sim_run_record_forget(void);

/* NVIDIA's runtime, linked into the file of that path, was refused. */
void sim_run_record_runtime(const char *path);

/* Begin and end of a call. In between, the same thread describes it with the functions below. */
void sim_run_record_begin(void);
void sim_run_record_end(enum sim_fn fn, CUresult result);

/* The call asks for `bytes` of the device's memory, or of host memory if `device` is NULL. */
void sim_run_record_asked(const struct sim_device *device, size_t bytes);

/* The call needs `bytes` more, of which the device, or the host if `device` is NULL, lacks
 * `missing`. */
void sim_run_record_lacked(const struct sim_device *device, size_t bytes, size_t missing);

/* The device's used bytes have changed, and the driver's own bytes by `own`. */
void sim_run_record_used(const struct sim_device *device, int64_t own);

/* The overhead of the device (SPILLWAY_SIM_OVERHEAD) is `bytes` now. */
void sim_run_record_overhead(const struct sim_device *device, size_t bytes);

/* Changes of the figures about NCCL (sim/record.h). */
struct sim_run_record_nccl {
    int64_t communicators, bytes, most_bytes, taken_bytes;
    int ranks; /* of the communicator */
};

/* The memory that NCCL would hold on a card has changed. */
void sim_run_record_nccl(const struct sim_device *device, const struct sim_run_record_nccl *change);

/* The program holds `bytes` more of the device's memory, or fewer if negative. */
void sim_run_record_held(const struct sim_device *device, int64_t bytes);

/* A kernel was launched. `computes`: the simulator computes its results. */
void sim_run_record_launched(const struct sim_device *device, enum spw_layout layout,
                             bool computes);

/* Work of a device has ended at the simulated time `end_ns`. If it was a kernel, it read `in_bytes`
 * of host memory and wrote `out_bytes`. */
void sim_run_record_ran(int ordinal, bool kernel, uint64_t end_ns, uint64_t in_bytes,
                        uint64_t out_bytes);

/* SPILLWAY_SIM_UNKNOWN decided a size that is not known. */
void sim_run_record_chosen(int ordinal);

/* The host reads `bytes` of the device's memory. `is_known`: their content is known
 * (memory/known.h). */
void sim_run_record_read(int ordinal, size_t bytes, bool is_known);
