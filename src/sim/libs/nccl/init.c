/* Creation, destruction and properties of communicators. */
#include <stdlib.h>

#include "sim/libs/common/driver.h"
#include "sim/libs/nccl/absent.h"
#include "sim/libs/nccl/exchange.h"

static ncclResult_t init(ncclComm_t *ret_comm, int ranks, const ncclUniqueId *id, int rank)
{
    struct ncclComm *comm;

    if (ret_comm == NULL || ranks < 1 || rank < 0 || rank >= ranks) {
        return sim_nccl_fail(ncclInvalidArgument, "invalid rank, count of ranks or communicator");
    }
    comm = sim_nccl_comm_create(ranks, rank);
    if (comm == NULL) {
        return sim_nccl_fail(ncclUnhandledCudaError, "there is no device, or it is full, or its "
                                                     "memory cannot be shared with other ranks");
    }
    if (id != NULL && !sim_nccl_others_are_absent()) {
        comm->board = sim_nccl_board_open(id);
    }
    *ret_comm = comm;
    return ncclSuccess;
}

SIM_SHIM_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
    if (uniqueId == NULL) {
        return sim_nccl_fail(ncclInvalidArgument, "the pointer for the unique id is NULL");
    }
    return sim_nccl_board_create(uniqueId)
               ? ncclSuccess
               : sim_nccl_fail(ncclSystemError, "out of memory or file descriptors");
}

SIM_SHIM_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                                              int rank)
{
    return init(comm, nranks, &commId, rank);
}

SIM_SHIM_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                                    ncclUniqueId commId, int rank,
                                                    ncclConfig_t *config)
{
    return init(comm, nranks, &commId, rank);
}

SIM_SHIM_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
                                                      int nId, ncclUniqueId *commIds,
                                                      ncclConfig_t *config)
{
    if (nId < 1 || nId > nranks || commIds == NULL) {
        return sim_nccl_fail(ncclInvalidArgument, "invalid count of unique ids");
    }
    return init(newcomm, nranks, &commIds[0], myrank);
}

static ncclResult_t init_on(ncclComm_t *ret_comm, int ranks, const ncclUniqueId *id, int rank,
                            CUdevice device)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUcontext context;

    if (driver == NULL || driver->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        driver->cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        return sim_nccl_fail(ncclUnhandledCudaError, "there is no such device");
    }
    return init(ret_comm, ranks, id, rank);
}

SIM_SHIM_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUcontext before = NULL;
    ncclUniqueId id;
    ncclResult_t result = ncclSuccess;

    if (comm == NULL || ndev < 1) {
        return sim_nccl_fail(ncclInvalidArgument, "invalid count of devices");
    }
    if (sim_shim_context() != CUDA_SUCCESS || driver->cuCtxGetCurrent(&before) != CUDA_SUCCESS) {
        return sim_nccl_fail(ncclUnhandledCudaError, "there is no device");
    }
    result = ncclGetUniqueId(&id);
    for (int i = 0; i < ndev && result == ncclSuccess; i++) {
        result = init_on(&comm[i], ndev, &id, i, devlist == NULL ? i : devlist[i]);
    }
    (void)driver->cuCtxSetCurrent(before);
    return result;
}

SIM_SHIM_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm != NULL) {
        sim_nccl_exchange_end(comm);
        if (comm->boxes != NULL) {
            sim_nccl_board_keep(comm->board); /* a stream may still use the boxes */
        }
        sim_nccl_board_unref(comm->board);
        sim_nccl_comm_free(comm);
    }
    return ncclSuccess;
}

SIM_SHIM_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

/* A communicator works only on streams, so there is nothing to wait for. */
SIM_SHIM_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return comm != NULL ? ncclSuccess : sim_nccl_fail(ncclInvalidArgument, "no communicator");
}

SIM_SHIM_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
    return ncclCommFinalize(comm);
}

#define GETTER(name, expression)                                                                   \
    SIM_SHIM_EXPORT ncclResult_t nccl##name(const ncclComm_t comm, int *value)                     \
    {                                                                                              \
        if (comm == NULL || value == NULL) {                                                       \
            return sim_nccl_fail(ncclInvalidArgument, "a pointer is NULL");                        \
        }                                                                                          \
        *value = (expression);                                                                     \
        return ncclSuccess;                                                                        \
    }                                                                                              \
    SIM_NCCL_ALIAS(name)

GETTER(CommCount, comm->ranks)
GETTER(CommCuDevice, comm->device)
GETTER(CommUserRank, comm->rank)

SIM_SHIM_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    if (comm == NULL || asyncError == NULL) {
        return sim_nccl_fail(ncclInvalidArgument, "a pointer is NULL");
    }
    *asyncError = ncclSuccess;
    return ncclSuccess;
}

SIM_SHIM_EXPORT ncclResult_t ncclGetVersion(int *version)
{
    if (version == NULL) {
        return sim_nccl_fail(ncclInvalidArgument, "the pointer for the version is NULL");
    }
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

SIM_SHIM_EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
    switch ((int)result) {
    case ncclSuccess:
        return "no error";
    case ncclUnhandledCudaError:
        return "a CUDA call failed";
    case ncclSystemError:
        return "a system call failed";
    case ncclInternalError:
        return "internal error";
    case ncclInvalidArgument:
        return "invalid argument";
    case ncclInvalidUsage:
        return "invalid usage";
    case ncclRemoteError:
        return "another rank failed";
    case ncclInProgress:
        return "in progress";
    default:
        return "unknown result";
    }
}

SIM_NCCL_ALIAS(GetUniqueId)
SIM_NCCL_ALIAS(CommInitRank)
SIM_NCCL_ALIAS(CommInitRankConfig)
SIM_NCCL_ALIAS(CommInitRankScalable)
SIM_NCCL_ALIAS(CommInitAll)
SIM_NCCL_ALIAS(CommDestroy)
SIM_NCCL_ALIAS(CommAbort)
SIM_NCCL_ALIAS(CommFinalize)
SIM_NCCL_ALIAS(CommRevoke)
SIM_NCCL_ALIAS(CommGetAsyncError)
SIM_NCCL_ALIAS(GetVersion)
SIM_NCCL_ALIAS(GetErrorString)
