/* The memory that a communicator takes on a card (gpu/communicator.h): it is told to the simulated
 * driver, for the verdict, and allocated if devices hold what a card does (SPILLWAY_SIM_OVERHEAD).
 *
 * Locking: that of a communicator. */
#pragma once

#include <cuda.h>

#include "gpu/communicator.h"

struct ncclComm;

/* Takes the memory of a part of the communicator, unless it has it. `peer` is the rank that
 * SPW_GPU_PEER connects; a rank of another machine takes none. The communicator's device is
 * current. CUDA_ERROR_OUT_OF_MEMORY as the driver says, and on failure nothing is taken. */
CUresult sim_nccl_hold(struct ncclComm *comm, enum spw_gpu_connection connection, int peer);

/* Gives all of it back. */
void sim_nccl_release(struct ncclComm *comm);
