/* A handle of shared memory contains the pid of the exporting process, and the number of this
 * process's descriptor of the chunk's own file. The importing process opens the descriptor through
 * /proc. Both processes must run as the same user on the same machine, and the ptrace scope must
 * allow the access. Normally it allows the access between a parent and its children. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/context.h"
#include "sim/driver/exec/work.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/memory/alloc.h"
#include "sim/driver/memory/chunk.h"
#include "sim/driver/memory/mapping.h"
#include "sim/driver/memory/region.h"

#define HANDLE_MAGIC UINT64_C(0x6370696d69737073)

struct handle {
    uint64_t magic;
    uint64_t block_id; /* block's id in the exporting process */
    uint64_t offset;   /* of the block in its chunk's file */
    uint64_t size;
    int32_t pid;
    int32_t fd;
};

_Static_assert(sizeof(struct handle) <= sizeof(CUipcMemHandle), "the handle must fit");

/* cuda.h: memory of cuMemAlloc only; pools and cuMemMap are refused with INVALID_VALUE. */
SIM_API(cuIpcGetMemHandle, SIM_CONTEXT, (CUipcMemHandle * pHandle, CUdeviceptr dptr))
{
    const struct sim_block *block = sim_block_find(dptr);
    struct handle handle;
    struct sim_chunk *chunk;
    int fd;

    if (pHandle == NULL || block == NULL || block->kind != SIM_BLOCK_ALLOC || block->freeing) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    chunk = sim_mapping_find(block->range.start)->chunk;
    fd = sim_mapping_export(chunk);
    if (fd < 0) {
        return CUDA_ERROR_MAP_FAILED;
    }
    close(fd);
    handle = (struct handle){
        .magic = HANDLE_MAGIC,
        .block_id = block->id,
        .offset = block->range.start - chunk->mappings->range.start,
        .size = block->size,
        .pid = (int32_t)getpid(),
        .fd = sim_extent_fd(&chunk->extent),
    };
    memset(pHandle, 0, sizeof(*pHandle));
    memcpy(pHandle, &handle, sizeof(handle));
    return CUDA_SUCCESS;
}

/* The block that this context has already opened from the handle, or NULL. */
static struct sim_block *opened_before(const struct handle *handle, CUcontext ctx)
{
    struct sim_block *block = sim_block_from(0);

    while (block != NULL) {
        if (block->kind == SIM_BLOCK_IPC && block->ctx == ctx && block->ipc_pid == handle->pid &&
            block->ipc_id == handle->block_id) {
            return block;
        }
        block = sim_block_from(sim_range_end(&block->range));
    }
    return NULL;
}

static CUresult open_block(const struct handle *handle, CUcontext ctx, struct sim_block **ret_block)
{
    struct sim_mapping *mapping;
    struct sim_block *block;
    struct sim_chunk *chunk;
    char path[64];
    CUresult result;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)handle->pid, (int)handle->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return CUDA_ERROR_MAP_FAILED;
    }
    result = sim_chunk_import(fd, &chunk);
    close(fd);
    if (result != CUDA_SUCCESS) {
        return CUDA_ERROR_MAP_FAILED;
    }
    result = CUDA_ERROR_MAP_FAILED;
    if (chunk->device == NULL || handle->offset >= chunk->size ||
        handle->size > chunk->size - handle->offset) {
        goto err_release;
    }
    result = sim_region_open(ctx->device, chunk, &mapping);
    if (result != CUDA_SUCCESS) {
        goto err_release;
    }
    block = sim_block_new(SIM_BLOCK_IPC, mapping->range.start + handle->offset,
                          sim_block_round((size_t)handle->size), handle->size);
    if (block == NULL) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
        goto err_close;
    }
    block->device = chunk->device;
    block->ctx = ctx;
    block->region = mapping;
    block->ipc_pid = handle->pid;
    block->ipc_id = handle->block_id;
    sim_chunk_release(chunk); /* the mapping keeps the chunk */
    *ret_block = block;
    return CUDA_SUCCESS;

err_close:
    sim_region_destroy(mapping);
err_release:
    sim_chunk_release(chunk);
    return result;
}

static CUresult open_handle(CUdeviceptr *pdptr, const CUipcMemHandle *given, unsigned int flags)
{
    CUcontext ctx = sim_ctx_current();
    struct sim_block *block;
    struct handle handle;
    CUresult result;

    /* cuda.h: the flag must be given. */
    if (pdptr == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(&handle, given, sizeof(handle));
    if (handle.magic != HANDLE_MAGIC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (handle.pid == (int32_t)getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT; /* IPC is for other processes */
    }
    result = sim_capture_unsafe();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    block = opened_before(&handle, ctx);
    if (block == NULL) {
        result = open_block(&handle, ctx, &block);
    }
    if (result == CUDA_SUCCESS) {
        block->opens++;
        *pdptr = block->range.start;
    }
    return result;
}

SIM_API(cuIpcOpenMemHandle, SIM_CONTEXT,
        (CUdeviceptr * pdptr, CUipcMemHandle handle, unsigned int Flags))
{
    return open_handle(pdptr, &handle, Flags);
}

SIM_API_SAME(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle);

SIM_API(cuIpcCloseMemHandle, SIM_CONTEXT, (CUdeviceptr dptr))
{
    struct sim_block *block = sim_block_find(dptr);
    CUresult result;

    if (block == NULL || block->kind != SIM_BLOCK_IPC || block->range.start != dptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_capture_unsafe();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (block->opens > 1) {
        block->opens--;
        return CUDA_SUCCESS;
    }
    sim_work_check_unused(dptr, block->range.size, UINT64_C(1) << block->ctx->device->ordinal,
                          "cuIpcCloseMemHandle");
    sim_alloc_destroy_ipc(block);
    return CUDA_SUCCESS;
}
