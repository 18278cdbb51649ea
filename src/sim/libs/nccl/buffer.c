#include "sim/libs/nccl/buffer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/libs/common/driver.h"
#include "sim/libs/common/shim.h"

static CUresult open_by_ipc(struct sim_nccl_buffer *buffer, size_t bytes)
{
    CUresult result = sim_shim_alloc(bytes, &buffer->address);
    CUipcMemHandle handle;

    return result == CUDA_SUCCESS ? sim_shim_driver()->cuIpcGetMemHandle(
                                        &handle, (CUdeviceptr)(uintptr_t)buffer->address)
                                  : result;
}

static CUresult open_by_handle(struct sim_nccl_buffer *buffer, CUdevice device, size_t bytes)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUresult result = driver->cuMemCreate(&buffer->chunk, bytes, &prop, 0);
    int file = -1;

    if (result != CUDA_SUCCESS) {
        buffer->chunk = 0;
        return result;
    }
    result = driver->cuMemExportToShareableHandle(&file, buffer->chunk,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    (void)close(file);
    return result;
}

CUresult sim_nccl_buffer_open(struct sim_nccl_buffer *ret_buffer, CUdevice device, size_t bytes)
{
    const char *cumem = getenv("NCCL_CUMEM_ENABLE");
    struct sim_nccl_buffer buffer = {0};
    CUresult result = cumem != NULL && strcmp(cumem, "0") == 0
                          ? open_by_ipc(&buffer, bytes)
                          : open_by_handle(&buffer, device, bytes);

    if (result == CUDA_SUCCESS) {
        *ret_buffer = buffer;
    } else {
        sim_nccl_buffer_close(&buffer);
    }
    return result;
}

void sim_nccl_buffer_close(struct sim_nccl_buffer *buffer)
{
    if (buffer->address != NULL) {
        sim_shim_free(buffer->address);
    }
    if (buffer->chunk != 0) {
        (void)sim_shim_driver()->cuMemRelease(buffer->chunk);
    }
    *buffer = (struct sim_nccl_buffer){0};
}
