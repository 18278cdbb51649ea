/* Memory budgets: how much memory of each device, and how much page-locked host memory, is taken.
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

/* Bytes of the device that are free: that neither this process nor another one of the run holds. */
size_t sim_budget_free(const struct sim_device *device);

/* Takes exactly `bytes` of the device's memory. CUDA_ERROR_OUT_OF_MEMORY, and nothing is taken, if
 * fewer are free. */
CUresult sim_budget_charge(struct sim_device *device, size_t bytes, enum sim_use use);

/* Gives back `bytes` that were charged for the same use. */
void sim_budget_refund(struct sim_device *device, size_t bytes, enum sim_use use);

/* A context of the device begins; ends. With SPILLWAY_SIM_OVERHEAD the first one takes what a card
 * holds besides the program's memory; the driver's own use comes out of that. The other ranks of a
 * card are other processes. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_budget_open_context(struct sim_device *device);
void sim_budget_close_context(struct sim_device *device);

/* Takes and gives back host memory that the driver may lock (SPILLWAY_SIM_HOST_MEMORY): page-locked
 * memory, chunks at host locations, managed memory. CUDA_ERROR_OUT_OF_MEMORY as above. */
CUresult sim_host_budget_charge(size_t bytes);
void sim_host_budget_refund(size_t bytes);
