#include "sim/libs/nccl/comm.h"

#include <stdlib.h>

#include "sim/libs/common/driver.h"

static _Thread_local const char *last_error = "";

ncclResult_t sim_nccl_fail(ncclResult_t result, const char *message)
{
    last_error = message;
    return result;
}

struct ncclComm *sim_nccl_comm_create(int ranks, int rank)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    struct ncclComm *comm;
    CUcontext context = NULL;
    CUdevice device = 0;

    if (sim_shim_context() != CUDA_SUCCESS || driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
        driver->cuCtxGetDevice(&device) != CUDA_SUCCESS) {
        return NULL;
    }
    comm = calloc(1, sizeof(*comm));
    if (comm == NULL) {
        return NULL;
    }
    comm->context = context;
    comm->device = device;
    comm->ranks = ranks;
    comm->rank = rank;
    if ((ranks > 1 &&
         sim_nccl_buffer_open(&comm->buffer, device, SIM_NCCL_BUFFER_GRANULE) != CUDA_SUCCESS) ||
        sim_nccl_hold(comm, SPW_GPU_COMMUNICATOR, 0) != CUDA_SUCCESS) {
        sim_nccl_comm_free(comm);
        return NULL;
    }
    return comm;
}

void sim_nccl_comm_free(struct ncclComm *comm)
{
    sim_nccl_buffer_close(&comm->buffer);
    sim_nccl_release(comm);
    free(comm);
}

SIM_SHIM_EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    return last_error;
}

SIM_NCCL_ALIAS(GetLastError)
