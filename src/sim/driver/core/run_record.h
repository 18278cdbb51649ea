/* Writes the record (sim/record.h) from which the launcher tells whether a program fits.
 *
 * Before cuInit, and without a launcher, the record is in private memory, so no function here
 * fails.
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

/* CUDA was initialised: begins the record the launcher reads. */
void sim_run_record_start(void);

/* The record does not tell what the process used: the verdict says so, and why. Also writes a
 * line. */
void sim_run_record_fail(const char *why);

/* To be called in a child after fork: lets go of the parent's record. */
void sim_run_record_forget(void);

/* NVIDIA's runtime, linked into the file of that path, was refused. */
void sim_run_record_runtime(const char *path);

/* Begin and end of a call. The functions below, called in between on the same thread, tell about
 * it. */
void sim_run_record_begin(void);
void sim_run_record_end(enum sim_fn fn, CUresult result);

/* The call asks for `bytes` of the device's memory; NULL: of host memory. */
void sim_run_record_asked(const struct sim_device *device, size_t bytes);

/* The device, or the host (NULL), lacks `missing` of `bytes` more. */
void sim_run_record_lacked(const struct sim_device *device, size_t bytes, size_t missing);

/* The device's used bytes have changed; `own` is by how much for the driver itself. */
void sim_run_record_used(const struct sim_device *device, int64_t own);

/* The device holds so much besides the memory that is asked for: SPILLWAY_SIM_OVERHEAD. */
void sim_run_record_overhead(const struct sim_device *device, size_t bytes);

/* By how much each figure about NCCL (sim/record.h) changes. */
struct sim_run_record_nccl {
    int64_t communicators, bytes, most_bytes, taken_bytes;
    int ranks; /* of the communicator */
};

/* What a card would hold for NCCL has changed. */
void sim_run_record_nccl(const struct sim_device *device, const struct sim_run_record_nccl *change);

/* The program holds so many bytes more, or less. */
void sim_run_record_held(const struct sim_device *device, int64_t bytes);

/* A kernel was launched. `computes`: it wrote results. */
void sim_run_record_launched(const struct sim_device *device, enum spw_layout layout,
                             bool computes);

/* Work of a device has ended at the simulated time `end_ns`. `kernel`: it was one, which used so
 * many bytes of host memory. */
void sim_run_record_ran(int ordinal, bool kernel, uint64_t end_ns, uint64_t in_bytes,
                        uint64_t out_bytes);

/* A size that is not known was chosen: SPILLWAY_SIM_UNKNOWN. */
void sim_run_record_chosen(int ordinal);

/* The host reads so many bytes of the device's memory, whose content is known or not
 * (memory/known.h). */
void sim_run_record_read(int ordinal, size_t bytes, bool is_known);
