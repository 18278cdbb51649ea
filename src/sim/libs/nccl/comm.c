#include "sim/libs/nccl/comm.h"

#include <pthread.h>
#include <stdlib.h>

#include "sim/driver/core/control.h"
#include "sim/libs/common/driver.h"

/* The memory that a part of a communicator takes on a card. */
struct sim_nccl_holding {
    struct sim_nccl_holding *next;
    enum spw_gpu_connection connection;
    int peer;
    struct sim_nccl_buffer buffer; /* zeros: not allocated */
};

static _Thread_local const char *last_error = "";
static __typeof__(&spillway_sim_connection) tell;
static pthread_once_t once = PTHREAD_ONCE_INIT;

ncclResult_t sim_nccl_fail(ncclResult_t result, const char *message)
{
    last_error = message;
    return result;
}

static void find(void)
{
    *(void **)&tell = sim_shim_simulator("spillway_sim_connection");
}

static bool is_held(const struct ncclComm *comm, enum spw_gpu_connection connection, int peer)
{
    const struct sim_nccl_holding *holding = comm->holdings;

    while (holding != NULL && (holding->connection != connection || holding->peer != peer)) {
        holding = holding->next;
    }
    return holding != NULL;
}

static bool is_elsewhere(const struct ncclComm *comm, int peer)
{
    return peer / SPW_GPU_IN_MACHINE != comm->rank / SPW_GPU_IN_MACHINE;
}

static size_t round_up(unsigned long long bytes)
{
    return (bytes + SIM_NCCL_BUFFER_GRANULE - 1) & ~(size_t)(SIM_NCCL_BUFFER_GRANULE - 1);
}

CUresult sim_nccl_hold(struct ncclComm *comm, enum spw_gpu_connection connection, int peer)
{
    struct sim_nccl_holding *holding;
    CUresult result = CUDA_SUCCESS;
    unsigned long long bytes;

    (void)pthread_once(&once, find);
    if (tell == NULL || is_held(comm, connection, peer) ||
        (connection == SPW_GPU_PEER && (peer == comm->rank || is_elsewhere(comm, peer)))) {
        return CUDA_SUCCESS;
    }
    holding = calloc(1, sizeof(*holding));
    if (holding == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    bytes = tell(comm->device, (int)connection, comm->ranks, 1);
    if (bytes > 0) {
        result = sim_nccl_buffer_open(&holding->buffer, comm->device, round_up(bytes));
    }
    if (result != CUDA_SUCCESS) {
        (void)tell(comm->device, (int)connection, comm->ranks, -1);
        free(holding);
        return result;
    }
    holding->connection = connection;
    holding->peer = peer;
    holding->next = comm->holdings;
    comm->holdings = holding;
    return CUDA_SUCCESS;
}

/* Frees all memory that the communicator holds on a card. */
static void release(struct ncclComm *comm)
{
    while (comm->holdings != NULL) {
        struct sim_nccl_holding *holding = comm->holdings;

        comm->holdings = holding->next;
        sim_nccl_buffer_close(&holding->buffer);
        (void)tell(comm->device, (int)holding->connection, comm->ranks, -1);
        free(holding);
    }
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
    release(comm);
    free(comm);
}

SIM_SHIM_EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    return last_error;
}

SIM_NCCL_ALIAS(GetLastError)
