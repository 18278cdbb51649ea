#include "serve/imports.h"

#include "device/state.h"
#include "serve/state.h"
#include "system/lock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One open block. */
struct spw_serve_import {
    struct spw_serve_import *next;
    uint64_t pid, start, export_id; /* from the handle */
    uint8_t key[SPW_IPC_KEY_BYTES]; /* from the handle; pid and start do not change at an exec */
    CUcontext context;
    int ordinal; /* ordinal of the context's device */
    CUdeviceptr base;
    size_t reserved;     /* bytes that are reserved from the base on */
    CUdeviceptr address; /* address of the block */
    size_t bytes;
    size_t count;  /* number of chunks */
    size_t mapped; /* number of mapped chunks; `chunks` has the sizes */
    uint64_t *chunks;
    unsigned opens;
};

static struct spw_serve_imports *const imports = &spw_serve.imports;

#define CALL(import, fn, ...)                                                                      \
    SPW_DRIVER_CALL(spw_process_driver(), (import)->ordinal, fn, __VA_ARGS__)

/* ---- the table ---- */

/* Caller holds the lock. */
static struct spw_serve_import *find(const struct spw_ipc_handle *handle, CUcontext context)
{
    struct spw_serve_import *import = imports->first;

    while (import != NULL &&
           (import->pid != handle->pid || import->start != handle->start ||
            import->export_id != handle->export_id || import->context != context ||
            memcmp(import->key, handle->key, sizeof(import->key)) != 0)) {
        import = import->next;
    }
    return import;
}

/* Removes an import from the table. Caller holds the lock. */
static void take_out(struct spw_serve_import *import)
{
    struct spw_serve_import **link = &imports->first;

    while (*link != import) {
        link = &(*link)->next;
    }
    *link = import->next;
    atomic_fetch_sub(&imports->count, 1);
}

bool spw_serve_imports_reopen(const struct spw_ipc_handle *handle, CUcontext context,
                              CUdeviceptr *ret_address)
{
    struct spw_serve_import *import;

    spw_lock(&spw_locks.imports);
    import = find(handle, context);
    if (import != NULL) {
        import->opens++;
        *ret_address = import->address;
    }
    spw_unlock(&spw_locks.imports);
    return import != NULL;
}

bool spw_serve_imports_find(CUdeviceptr address, CUdeviceptr *ret_base, size_t *ret_bytes)
{
    const struct spw_serve_import *import;

    if (atomic_load(&imports->count) == 0) {
        return false;
    }
    spw_lock(&spw_locks.imports);
    import = imports->first;
    while (import != NULL && address - import->address >= import->bytes) {
        import = import->next;
    }
    if (import != NULL) {
        *ret_base = import->address;
        *ret_bytes = import->bytes;
    }
    spw_unlock(&spw_locks.imports);
    return import != NULL;
}

/* ---- mapping ---- */

/* Unmaps the chunks, gives the addresses back and frees the record. No work may be using the
 * block. */
static void discard(struct spw_serve_import *import)
{
    CUdeviceptr at = import->base;

    for (size_t i = 0; i < import->mapped; i++) {
        (void)CALL(import, cuMemUnmap, at, import->chunks[i]);
        at += import->chunks[i];
    }
    if (import->base != 0) {
        (void)CALL(import, cuMemAddressFree, import->base, import->reserved);
    }
    free(import->chunks);
    free(import);
}

/* Maps a chunk at an address. The mapping keeps the memory alive, not the handle. */
static CUresult map_chunk(struct spw_serve_import *import, int fd, CUdeviceptr at, size_t bytes)
{
    CUmemGenericAllocationHandle handle;
    CUresult result = CALL(import, cuMemImportFromShareableHandle, &handle, (void *)(intptr_t)fd,
                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

    if (result == CUDA_SUCCESS) {
        result = CALL(import, cuMemMap, at, bytes, 0, handle, 0);
        (void)CALL(import, cuMemRelease, handle);
    }
    return result;
}

static CUresult map_chunks(struct spw_serve_import *import, struct spw_ipc_block *block)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                 .id = spw_device_at(import->ordinal)->handle},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = CALL(import, cuMemAddressReserve, &import->base, import->reserved, 0, 0, 0);
    CUdeviceptr at = import->base;

    for (size_t i = 0; i < block->count && result == CUDA_SUCCESS; i++) {
        result = map_chunk(import, block->fds[i], at, block->chunks[i]);
        close(block->fds[i]);
        block->fds[i] = -1;
        import->mapped += result == CUDA_SUCCESS;
        at += block->chunks[i];
    }
    return result == CUDA_SUCCESS
               ? CALL(import, cuMemSetAccess, import->base, import->reserved, &access, 1)
               : result;
}

/* Makes a record of a block that is not mapped yet, and becomes the owner of its array of sizes.
 * Returns NULL if there is no memory, or if the block does not fit into its chunks. */
static struct spw_serve_import *new_import(const struct spw_ipc_handle *handle, CUcontext context,
                                           int ordinal, struct spw_ipc_block *block)
{
    struct spw_serve_import *import = calloc(1, sizeof(*import));
    uint64_t reserved = 0;

    for (size_t i = 0; i < block->count; i++) {
        reserved += block->chunks[i];
    }
    if (import == NULL || block->offset >= reserved || block->bytes > reserved - block->offset) {
        free(import);
        return NULL;
    }
    *import = (struct spw_serve_import){.pid = handle->pid,
                                        .start = handle->start,
                                        .export_id = handle->export_id,
                                        .context = context,
                                        .ordinal = ordinal,
                                        .reserved = reserved,
                                        .bytes = block->bytes,
                                        .count = block->count,
                                        .chunks = block->chunks,
                                        .opens = 1};
    memcpy(import->key, handle->key, sizeof(import->key));
    block->chunks = NULL;
    return import;
}

/* Enters an import in the table, unless another thread has entered the same block. Returns the
 * import that is in the table. */
static struct spw_serve_import *enter(const struct spw_ipc_handle *handle,
                                      struct spw_serve_import *import)
{
    struct spw_serve_import *known;

    spw_lock(&spw_locks.imports);
    known = find(handle, import->context);
    if (known != NULL) {
        known->opens++;
    } else {
        import->next = imports->first;
        imports->first = known = import;
        atomic_fetch_add(&imports->count, 1);
    }
    spw_unlock(&spw_locks.imports);
    return known;
}

CUresult spw_serve_imports_map(const struct spw_ipc_handle *handle, CUcontext context, int ordinal,
                               struct spw_ipc_block *block, CUdeviceptr *ret_address)
{
    uint64_t *chunks = block->chunks, offset = block->offset;
    struct spw_serve_import *import = new_import(handle, context, ordinal, block), *entered;
    CUresult result;

    if (import == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->chunks = chunks; /* for its sizes */
    result = map_chunks(import, block);
    block->chunks = NULL;
    if (result != CUDA_SUCCESS) {
        discard(import);
        return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_ERROR_MAP_FAILED;
    }
    import->address = import->base + offset;
    entered = enter(handle, import);
    *ret_address = entered->address;
    if (entered != import) {
        discard(import);
    }
    return CUDA_SUCCESS;
}

/* ---- the end ---- */

/* Waits for all work of the context, because unmapping does not wait. */
static CUresult synchronize(const struct spw_serve_import *import)
{
    CUcontext popped;
    CUresult result = CALL(import, cuCtxPushCurrent_v2, import->context);

    if (result == CUDA_SUCCESS) {
        result = SPW_DRIVER_CALL0(spw_process_driver(), import->ordinal, cuCtxSynchronize);
        (void)CALL(import, cuCtxPopCurrent_v2, &popped);
    }
    return result;
}

/* Undoes one opening of the block at an address. If it was the last one, removes the block from the
 * table and returns it, still mapped. *ret_found is true if there is a block. */
static struct spw_serve_import *close_unless_last(CUdeviceptr address, bool *ret_found)
{
    struct spw_serve_import *import;

    spw_lock(&spw_locks.imports);
    import = imports->first;
    while (import != NULL && import->address != address) {
        import = import->next;
    }
    *ret_found = import != NULL;
    if (import != NULL && import->opens > 1) {
        import->opens--;
        import = NULL;
    } else if (import != NULL) {
        take_out(import);
    }
    spw_unlock(&spw_locks.imports);
    return import;
}

bool spw_serve_imports_close(CUdeviceptr address, CUresult *ret_result)
{
    struct spw_serve_import *last;
    bool found;

    if (atomic_load(&imports->count) == 0) {
        return false;
    }
    last = close_unless_last(address, &found);
    *ret_result = CUDA_SUCCESS;
    if (last == NULL) {
        return found;
    }
    *ret_result = synchronize(last);
    if (*ret_result == CUDA_SUCCESS) {
        discard(last);
        return true;
    }
    /* The block stays open. This happens for example during a capture. */
    spw_lock(&spw_locks.imports);
    last->next = imports->first;
    imports->first = last;
    atomic_fetch_add(&imports->count, 1);
    spw_unlock(&spw_locks.imports);
    return true;
}

void spw_serve_imports_end_context(CUcontext context)
{
    struct spw_serve_import *import;

    do {
        spw_lock(&spw_locks.imports);
        import = imports->first;
        while (import != NULL && import->context != context) {
            import = import->next;
        }
        if (import != NULL) {
            take_out(import);
        }
        spw_unlock(&spw_locks.imports);
        if (import != NULL) {
            discard(import);
        }
    } while (import != NULL);
}

void spw_serve_imports_reset(void)
{
    while (imports->first != NULL) {
        struct spw_serve_import *import = imports->first;

        imports->first = import->next;
        free(import->chunks);
        free(import);
    }
    atomic_store(&imports->count, 0);
}
