/* Memory budgets: the used memory of each device, and the page-locked host memory in use. On a
 * machine whose device has no memory of its own, both are one.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stddef.h>

#include <cuda.h>

#include "sim/driver/core/device.h"

/* Purpose of device memory. */
enum sim_use {
    SIM_USE_MEMORY, /* allocations of the program */
    SIM_USE_OWN,    /* code, local memory and graphs, which the driver takes by itself */
};

/* Bytes of the device that no process of the run holds. */
size_t sim_budget_free(const struct sim_device *device);

/* Reads again the memory of the host's side of this process. If a device has no memory of its own,
 * this counts against it. If device and host together take more than it has, the machine dies
 * (core/machine.h). The functions that take memory do the same. */
void sim_budget_look(void);

/* Like sim_budget_look, but does so at most every few milliseconds. For a place that is passed
 * often, because the host's memory grows without a call. */
void sim_budget_look_sometimes(void);

/* Takes exactly `bytes` of the device's memory. If fewer are free, returns CUDA_ERROR_OUT_OF_MEMORY
 * and takes nothing. */
CUresult sim_budget_charge(struct sim_device *device, size_t bytes, enum sim_use use);

/* Gives back `bytes` that were charged for the same use. */
void sim_budget_refund(struct sim_device *device, size_t bytes, enum sim_use use);

/* Count the live contexts of this process on the device. With SPILLWAY_SIM_OVERHEAD, the first
 * context charges the overhead that one process has on a real card, and the last context refunds
 * the overhead. Memory of SIM_USE_OWN then counts towards the overhead: only the part beyond the
 * overhead is charged. CUDA_ERROR_OUT_OF_MEMORY if the overhead does not fit. */
CUresult sim_budget_open_context(struct sim_device *device);
void sim_budget_close_context(struct sim_device *device);

/* Charge and refund host memory that SPILLWAY_SIM_HOST_MEMORY limits (page-locked memory, chunks at
 * host locations, managed memory). CUDA_ERROR_OUT_OF_MEMORY, and nothing is charged, if fewer bytes
 * are free. */
CUresult sim_host_budget_charge(size_t bytes);
void sim_host_budget_refund(size_t bytes);
