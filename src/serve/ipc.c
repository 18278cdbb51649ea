/* Memory that other processes map: CUDA IPC with blocks of the pool. The handles are spillway's
 * own. The other process, which also runs under spillway, requests the chunks of the handle from
 * this process. The driver serves its own handles, and memory outside of the pool. */
#include "common/options.h"
#include "device/device.h"
#include "device/lease.h"
#include "device/spill.h"
#include "ipc/client.h"
#include "ipc/server.h"
#include "ipc/table.h"
#include "migrate/exporter.h"
#include "program/stream.h"
#include "serve/handlers.h"
#include "serve/imports.h"
#include "serve/placement.h"
#include "serve/state.h"
#include "service/thread.h"
#include "system/fd.h"
#include "system/lock.h"
#include "system/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct spw_ipc_handle) == sizeof(CUipcMemHandle), "handles are CUDA's");

/* ---- exporting ---- */

/* The reason why a block cannot be shared. */
enum refusal {
    NOT_NOW,     /* the device does not become idle, or moves are not possible */
    NO_ROOM,     /* there is no room for chunks of its own */
    FIXED,       /* its physical memory is known to others */
    NO_CHUNK,    /* the driver makes no such chunks, or the block is on the host permanently */
    NO_SYSTEM,   /* this process has no thread, socket, descriptor or memory for it */
    UNREACHABLE, /* not a refusal: the other process does not answer */
};

static const struct {
    CUresult result;
    const char *why;
} refusals[] = {
    [NOT_NOW] = {CUDA_ERROR_MAP_FAILED,
                 "a capture is open, the device did not become idle, or a library submits work "
                 "that spillway does not see"},
    [NO_ROOM] = {CUDA_ERROR_OUT_OF_MEMORY, "the device has no room for a copy of it"},
    [FIXED] = {CUDA_ERROR_INVALID_VALUE,
               "it is registered with other hardware already; share it before"},
    [NO_CHUNK] =
        {CUDA_ERROR_INVALID_VALUE,
         "the driver has no memory that can be exported, or the block is on the host for good"},
    [NO_SYSTEM] = {CUDA_ERROR_MAP_FAILED,
                   "the process has no thread, socket or file descriptor left"},
};

/* Returns true at the first call for a reason. */
static bool is_new(enum refusal reason)
{
    return (atomic_fetch_or(&spw_serve.advised, 1u << reason) & 1u << reason) == 0;
}

/* Refuses a request, and logs advice once for each reason. */
static CUresult refuse(enum refusal refusal)
{
    if (is_new(refusal)) {
        spw_log_always("a block of pool memory cannot be shared with other processes by CUDA "
                       "IPC: %s. If this cannot be avoided, use --pass (SPILLWAY_PASS) with the "
                       "library that allocates it, or --mode observe",
                       refusals[refusal].why);
    }
    return refusals[refusal].result;
}

static enum refusal refusal_of(enum spw_err err)
{
    switch (err) {
    case SPW_E_AGAIN:
        return NOT_NOW;
    case SPW_E_NO_MEMORY:
    case SPW_E_LIMIT:
        return NO_ROOM;
    case SPW_E_INVAL:
        return FIXED;
    case SPW_E_METADATA_NOMEM:
        return NO_SYSTEM;
    default:
        return NO_CHUNK;
    }
}

/* A block that is being exported. */
struct exporting {
    struct spw_device *device;
    struct spw_pool *pool;
    struct spw_block block;
    size_t count; /* number of chunks */
    struct spw_exported_chunk *chunks;
    int *fds;
    uint64_t *bytes;
    uint64_t offset;
};

/* Gives the block chunks of its own. */
static enum spw_err give_chunks(const struct exporting *exporting)
{
    enum { MILLION = 1000000 };
    const struct spw_exporter exporter = {
        .pool = exporting->pool,
        .tier = atomic_load(&exporting->device->tier),
        .counters = exporting->device->counters,
        .wait_ns = spw_option_get(SPW_OPT_SPILLWAY_MOVE_WAIT, NULL, 0).bytes * MILLION,
    };

    if (!spw_device_may_move()) {
        return SPW_E_AGAIN;
    }
    if (spw_serve_placement_is_due() &&
        spw_serve_placement_commit("cuIpcGetMemHandle") != CUDA_SUCCESS) {
        return SPW_E_NO_MEMORY;
    }
    return spw_migrate_export(&exporter, exporting->block.address, exporting->block.id);
}

/* Lists the chunks of the block. Returns false if there is no memory, or if the block was freed. */
static bool list_chunks(struct exporting *exporting)
{
    size_t count = spw_pool_export_chunks(exporting->pool, exporting->block.address, NULL, 0,
                                          &exporting->offset);

    if (count == 0 || count > SPW_IPC_CHUNKS) {
        return false;
    }
    exporting->chunks = calloc(count, sizeof(*exporting->chunks));
    exporting->fds = calloc(count, sizeof(*exporting->fds));
    exporting->bytes = calloc(count, sizeof(*exporting->bytes));
    exporting->count = count;
    return exporting->chunks != NULL && exporting->fds != NULL && exporting->bytes != NULL &&
           spw_pool_export_chunks(exporting->pool, exporting->block.address, exporting->chunks,
                                  count, &exporting->offset) == count;
}

/* Opens a descriptor of each chunk. If one fails, closes all of them and returns false. */
static bool open_fds(struct exporting *exporting)
{
    struct spw_driver *driver = spw_process_driver();
    size_t had = 0;

    for (; had < exporting->count; had++) {
        int fd = -1;

        if (SPW_DRIVER_CALL(driver, exporting->device->ordinal, cuMemExportToShareableHandle, &fd,
                            exporting->chunks[had].chunk, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            0) != CUDA_SUCCESS) {
            break;
        }
        exporting->fds[had] = spw_fd_park(fd);
        exporting->bytes[had] = exporting->chunks[had].bytes;
    }
    if (had == exporting->count) {
        return true;
    }
    while (had > 0) {
        close(exporting->fds[--had]);
    }
    return false;
}

/* Enters the block in the table. Its chunks are exportable. */
static bool enter(struct exporting *exporting, struct spw_ipc_handle *handle)
{
    bool entered = false;

    if (list_chunks(exporting) && open_fds(exporting)) {
        entered = spw_ipc_table_add(&(struct spw_ipc_export){.address = exporting->block.address,
                                                             .block = exporting->block.id,
                                                             .offset = exporting->offset,
                                                             .bytes = exporting->block.bytes,
                                                             .context = exporting->block.context,
                                                             .count = exporting->count,
                                                             .fds = exporting->fds,
                                                             .chunks = exporting->bytes},
                                    handle);
        for (size_t i = 0; i < exporting->count && !entered; i++) {
            close(exporting->fds[i]);
        }
    }
    free(exporting->chunks);
    free(exporting->fds);
    free(exporting->bytes);
    return entered;
}

/* Makes a handle of a block. Caller holds spw_locks.exporting. */
static CUresult export(struct exporting *exporting, struct spw_ipc_handle *handle)
{
    struct spw_driver *driver = spw_process_driver();
    enum spw_err err;

    if (driver->cuMemExportToShareableHandle == NULL) {
        return refuse(NO_CHUNK);
    }
    if (!spw_ipc_server_start(spw_service_thread_start, handle)) {
        return refuse(NO_SYSTEM);
    }
    if (spw_ipc_table_find(exporting->block.address, exporting->block.id, handle)) {
        return CUDA_SUCCESS;
    }
    err = give_chunks(exporting);
    if (err != SPW_OK) {
        return err == SPW_E_NOT_OURS ? CUDA_ERROR_INVALID_VALUE : refuse(refusal_of(err));
    }
    return enter(exporting, handle) ? CUDA_SUCCESS : refuse(NO_SYSTEM);
}

CUresult spw_serve_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct exporting exporting = {0};
    struct spw_ipc_handle handle;
    CUresult result;

    exporting.device = spw_device_owner(dptr, &exporting.pool);
    if (exporting.device == NULL) {
        SPW_FORWARD(result, spw_process_driver()->cuIpcGetMemHandle(pHandle, dptr));
        return result;
    }
    if (pHandle == NULL || !spw_pool_find(exporting.pool, dptr, &exporting.block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    spw_lock(&spw_locks.exporting);
    result = export(&exporting, &handle);
    spw_unlock(&spw_locks.exporting);
    if (result == CUDA_SUCCESS) {
        memcpy(pHandle, &handle, sizeof(*pHandle));
    }
    return result;
}

/* ---- importing ---- */

static CUresult result_of(enum spw_ipc_reply reply)
{
    switch (reply) {
    case SPW_IPC_GOT:
        return CUDA_SUCCESS;
    case SPW_IPC_DENIED:
        return CUDA_ERROR_INVALID_VALUE;
    case SPW_IPC_NO_ROOM:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case SPW_IPC_GONE:
    case SPW_IPC_SILENT:
        break;
    }
    return CUDA_ERROR_MAP_FAILED;
}

/* Logs once that the other process cannot be reached. The reason may be a container. */
static void tell_unreachable(enum spw_ipc_reply reply, uint32_t pid)
{
    if ((reply == SPW_IPC_GONE || reply == SPW_IPC_SILENT) && is_new(UNREACHABLE)) {
        spw_log_always("memory of process %u cannot be mapped: it %s", (unsigned)pid,
                       reply == SPW_IPC_GONE
                           ? "has ended, belongs to another user, or is in a container with a "
                             "network of its own"
                           : "did not answer within 5 seconds");
    }
}

/* Gets a block from the process that the handle names. Holds no lock and no lease during the
 * wait. */
static CUresult fetch(const struct spw_ipc_handle *handle, struct spw_ipc_block *ret_block)
{
    enum spw_ipc_reply reply;

    spw_device_lease_leave();
    reply = spw_ipc_fetch(handle, ret_block);
    spw_device_lease_enter();
    tell_unreachable(reply, handle->pid);
    return result_of(reply);
}

/* Opens a handle that spillway made. */
static CUresult open_handle(CUdeviceptr *pdptr, const struct spw_ipc_handle *handle,
                            unsigned int flags)
{
    const struct spw_stream_info *here = spw_program_stream_current();
    struct spw_driver *driver = spw_process_driver();
    struct spw_ipc_block block;
    CUcontext context;
    CUresult result;
    int ordinal;

    if (pdptr == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (here == NULL || spw_ipc_handle_is_mine(handle)) {
        return CUDA_ERROR_INVALID_CONTEXT; /* IPC is for other processes */
    }
    if (driver->cuMemImportFromShareableHandle == NULL || driver->cuMemAddressReserve == NULL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    context = here->stream.context;
    ordinal = here->ordinal;
    if (spw_serve_imports_reopen(handle, context, pdptr)) {
        return CUDA_SUCCESS;
    }
    result = fetch(handle, &block);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = spw_serve_imports_map(handle, context, ordinal, &block, pdptr);
    spw_ipc_block_fini(&block);
    return result;
}

CUresult spw_serve_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                         unsigned int Flags)
{
    struct spw_ipc_handle ours;
    CUresult result;

    memcpy(&ours, &handle, sizeof(ours));
    if (spw_ipc_handle_is_ours(&ours)) {
        return open_handle(pdptr, &ours, Flags);
    }
    SPW_FORWARD(result, spw_process_driver()->cuIpcOpenMemHandle_v2(pdptr, handle, Flags));
    return result;
}

CUresult spw_serve_cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct spw_ipc_handle ours;
    CUresult result;

    memcpy(&ours, &handle, sizeof(ours));
    if (spw_ipc_handle_is_ours(&ours)) {
        return open_handle(pdptr, &ours, Flags);
    }
    SPW_FORWARD(result, spw_process_driver()->cuIpcOpenMemHandle(pdptr, handle, Flags));
    return result;
}

CUresult spw_serve_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    CUresult result;

    return spw_serve_imports_close(dptr, &result) ? result
                                                  : spw_process_driver()->cuIpcCloseMemHandle(dptr);
}
