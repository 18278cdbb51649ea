/* NCCL's allocator, and the registration of buffers. */
#include <stdlib.h>

#include "sim/libs/nccl/comm.h"

SIM_SHIM_EXPORT ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
    if (ptr == NULL || size == 0) {
        return sim_nccl_fail(ncclInvalidArgument, "the size is 0 or the pointer is NULL");
    }
    return sim_shim_alloc(size, ptr) == CUDA_SUCCESS
               ? ncclSuccess
               : sim_nccl_fail(ncclUnhandledCudaError, "out of device memory");
}

SIM_SHIM_EXPORT ncclResult_t ncclMemFree(void *ptr)
{
    sim_shim_free(ptr);
    return ncclSuccess;
}

/* A handle is only a unique address. */
static ncclResult_t register_buffer(ncclComm_t comm, const void *buffer, size_t size,
                                    void **ret_handle)
{
    void *handle;

    if (comm == NULL || buffer == NULL || size == 0 || ret_handle == NULL) {
        return sim_nccl_fail(ncclInvalidArgument, "a pointer is NULL or the size is 0");
    }
    handle = malloc(1);
    if (handle == NULL) {
        return sim_nccl_fail(ncclSystemError, "out of host memory");
    }
    *ret_handle = handle;
    return ncclSuccess;
}

static ncclResult_t forget(ncclComm_t comm, void *handle)
{
    if (comm == NULL) {
        return sim_nccl_fail(ncclInvalidArgument, "no communicator");
    }
    free(handle);
    return ncclSuccess;
}

SIM_SHIM_EXPORT ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size,
                                              void **handle)
{
    return register_buffer(comm, buff, size, handle);
}

SIM_SHIM_EXPORT ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return forget(comm, handle);
}

SIM_SHIM_EXPORT ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size,
                                                    ncclWindow_t *win, int winFlags)
{
    return register_buffer(comm, buff, size, (void **)win);
}

SIM_SHIM_EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    return forget(comm, win);
}

SIM_NCCL_ALIAS(MemAlloc)
SIM_NCCL_ALIAS(MemFree)
SIM_NCCL_ALIAS(CommRegister)
SIM_NCCL_ALIAS(CommDeregister)
SIM_NCCL_ALIAS(CommWindowRegister)
SIM_NCCL_ALIAS(CommWindowDeregister)
