/* The memory that a communicator takes on a card (gpu/communicator.h): reported to the simulated
 * driver, for the verdict, and allocated with SPILLWAY_SIM_OVERHEAD.
 *
 * Locking: as for a communicator. */
#pragma once

#include <cuda.h>

#include "gpu/communicator.h"

struct ncclComm;

/* Takes the memory of a part of the communicator, unless it is already held. `peer` is the rank
 * that SPW_GPU_PEER connects; a rank of another machine takes no memory. The communicator's device
 * must be current. CUDA_ERROR_OUT_OF_MEMORY or another error of the driver; nothing is then taken.
 */
CUresult sim_nccl_hold(struct ncclComm *comm, enum spw_gpu_connection connection, int peer);

/* Gives all memory of the communicator back. */
void sim_nccl_release(struct ncclComm *comm);
