#include "backend/copy.h"

#include "common/hash.h"
#include "system/keep.h"

#include <stdlib.h>

/* A probe is so small that the simulated GPU never drops its content. */
enum { PIECE_BYTES = 1 << 20, PROBE_BYTES = 1 << 16, PROBE_WORDS = 4, PATTERN = 0x5b1a7e55 };

/* A copy engine runs one copy after the other. Pieces of this size bound the time that a copy of
 * the program waits behind one of spillway's. */
enum { COPY_BYTES = 8 << 20 };

#define CALL(copier, fn, ...)                                                                      \
    SPW_DRIVER_CALL((copier)->fences->driver, (copier)->fences->ordinal, fn, __VA_ARGS__)

/* Any id but SPW_STREAM_ALL would do: fences of this stream are never looked up by id. */
static struct spw_stream own_stream(const struct spw_backend_copier *copier)
{
    return (struct spw_stream){
        .id = UINT64_MAX, .handle = copier->handle, .context = copier->context};
}

/* Creates the stream at first use. It is non-blocking: it does not synchronise with the legacy
 * default stream. */
static enum spw_err open_stream(struct spw_backend_copier *copier)
{
    struct spw_backend_fences *fences = copier->fences;
    CUcontext context;
    CUresult result;
    bool pushed;

    if (copier->handle != NULL) {
        return SPW_OK;
    }
    context = spw_backend_fences_own_context(fences);
    if (context == NULL) {
        (void)CALL(copier, cuCtxGetCurrent, &context);
    }
    if (context == NULL) {
        return SPW_E_UNSUPPORTED;
    }
    result = spw_backend_fences_enter(fences, context, &pushed);
    if (result == CUDA_SUCCESS) {
        result = CALL(copier, cuStreamCreate, &copier->handle, CU_STREAM_NON_BLOCKING);
        spw_backend_fences_leave(fences, pushed);
    }
    if (result != CUDA_SUCCESS) {
        copier->handle = NULL;
        return spw_err_from_driver((int)result);
    }
    copier->context = context;
    return SPW_OK;
}

/* Makes the stream wait for all work submitted to the device so far. */
static enum spw_err wait_for_all_streams(struct spw_backend_copier *copier)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL}, own = own_stream(copier);
    struct spw_backend_fence *fence;
    enum spw_err err = spw_backend_fence_record(copier->fences, &all, &fence);

    if (err == SPW_OK) {
        err = spw_backend_fence_wait_stream(copier->fences, &own, fence);
        spw_backend_fence_drop(copier->fences, fence);
    }
    return err;
}

/* *ret_any: at least one copy was enqueued. */
static enum spw_err enqueue(struct spw_backend_copier *copier, const struct spw_vm_copy *copies,
                            size_t count, bool *ret_any)
{
    CUresult result = CUDA_SUCCESS;
    bool pushed;

    *ret_any = false;
    result = spw_backend_fences_enter(copier->fences, copier->context, &pushed);
    if (result != CUDA_SUCCESS) {
        return spw_err_from_driver((int)result);
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        for (uint64_t at = 0; at < copies[i].bytes && result == CUDA_SUCCESS; at += COPY_BYTES) {
            uint64_t left = copies[i].bytes - at;

            result = CALL(copier, cuMemcpyAsync, copies[i].to + at, copies[i].from + at,
                          left < COPY_BYTES ? left : COPY_BYTES, copier->handle);
            *ret_any |= result == CUDA_SUCCESS;
        }
    }
    spw_backend_fences_leave(copier->fences, pushed);
    return spw_err_from_driver((int)result);
}

/* Waits for a copy and leaves its context. It waits even after an error, which may come from
 * earlier work, or after the copy was enqueued. *ret_pending (may be NULL) is true if the wait
 * failed. The copy may then still use the host's memory. */
static CUresult finish(struct spw_backend_copier *copier, CUresult result, bool pushed,
                       bool *ret_pending)
{
    CUresult waited = CALL(copier, cuStreamSynchronize, copier->handle);

    if (ret_pending != NULL) {
        *ret_pending = waited != CUDA_SUCCESS;
    }
    spw_backend_fences_leave(copier->fences, pushed);
    return result != CUDA_SUCCESS ? result : waited;
}

/* Replaces the watch of the stream by an event behind the copies. If no event can be recorded, the
 * watch stays. Waiting here would hold the pool's lock while the program's work runs, and that work
 * may wait for a thread that needs memory. */
static void record(struct spw_backend_copier *copier, struct spw_backend_fence **fence)
{
    const struct spw_stream own = own_stream(copier);
    struct spw_backend_fence *recorded;

    if (spw_backend_fence_record(copier->fences, &own, &recorded) == SPW_OK) {
        spw_backend_fence_drop(copier->fences, *fence);
        *fence = recorded;
    }
}

enum spw_err spw_backend_copier_copy(struct spw_backend_copier *copier,
                                     const struct spw_vm_copy *copies, size_t count, bool after_all,
                                     struct spw_backend_fence **ret_fence)
{
    enum spw_err err = open_stream(copier);
    struct spw_stream own;
    bool any;

    *ret_fence = NULL;
    if (err == SPW_OK && after_all) {
        err = wait_for_all_streams(copier);
    }
    if (err != SPW_OK) {
        return err;
    }
    own = own_stream(copier);
    err = spw_backend_fence_watch(copier->fences, &own, ret_fence);
    if (err != SPW_OK) {
        return err;
    }
    err = enqueue(copier, copies, count, &any);
    if (!any) {
        spw_backend_fence_drop(copier->fences, *ret_fence);
        *ret_fence = NULL;
        return err != SPW_OK ? err : SPW_E_INVAL;
    }
    record(copier, ret_fence);
    return err;
}

static CUresult read_back(struct spw_backend_copier *copier, void *to, uint64_t from, size_t bytes,
                          bool *ret_pending)
{
    bool pushed;
    CUresult result = spw_backend_fences_enter(copier->fences, copier->context, &pushed);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = CALL(copier, cuMemcpyDtoHAsync_v2, to, from, bytes, copier->handle);
    return finish(copier, result, pushed, ret_pending);
}

static CUresult write_out(struct spw_backend_copier *copier, uint64_t to, const void *from,
                          size_t bytes)
{
    bool pushed;
    CUresult result = spw_backend_fences_enter(copier->fences, copier->context, &pushed);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = CALL(copier, cuMemcpyHtoDAsync_v2, to, from, bytes, copier->handle);
    return finish(copier, result, pushed, NULL);
}

enum spw_err spw_backend_copier_read(struct spw_backend_copier *copier, void *to, uint64_t address,
                                     uint64_t bytes)
{
    enum spw_err err = open_stream(copier);

    return err == SPW_OK ? spw_err_from_driver((int)read_back(copier, to, address, bytes, NULL))
                         : err;
}

enum spw_err spw_backend_copier_write(struct spw_backend_copier *copier, uint64_t address,
                                      const void *from, uint64_t bytes)
{
    enum spw_err err = open_stream(copier);

    return err == SPW_OK ? spw_err_from_driver((int)write_out(copier, address, from, bytes)) : err;
}

enum spw_err spw_backend_copier_hash(struct spw_backend_copier *copier, uint64_t address,
                                     uint64_t bytes, uint64_t *ret_hash)
{
    unsigned char *piece = malloc(PIECE_BYTES);
    enum spw_err err = piece == NULL ? SPW_E_METADATA_NOMEM : open_stream(copier);
    uint64_t hash = 0;
    bool pending = false;

    for (uint64_t done = 0; err == SPW_OK && done < bytes; done += PIECE_BYTES) {
        size_t count = bytes - done < PIECE_BYTES ? (size_t)(bytes - done) : PIECE_BYTES;

        err = spw_err_from_driver((int)read_back(copier, piece, address + done, count, &pending));
        if (err == SPW_OK) {
            hash = spw_hash_mix(hash, spw_hash_bytes(piece, count));
        }
    }
    if (pending) {
        spw_keep_for_ever(piece);
    } else {
        free(piece);
    }
    if (err == SPW_OK) {
        *ret_hash = hash;
    }
    return err;
}

/* Runs the probe. The stream's context is current. */
static CUresult probe_copy(struct spw_backend_copier *copier, uint64_t to, uint64_t from,
                           uint64_t bytes, uint32_t *words, size_t words_bytes)
{
    CUresult result =
        CALL(copier, cuMemsetD32Async, from, PATTERN, (size_t)(bytes / 4), copier->handle);

    if (result == CUDA_SUCCESS) {
        result = CALL(copier, cuMemcpyAsync, to, from, (size_t)bytes, copier->handle);
    }
    if (result == CUDA_SUCCESS) {
        result = read_back(copier, words, to + bytes - words_bytes, words_bytes, NULL);
    }
    return result;
}

/* Enters the stream's context and runs the probe. *ret_busy: the probe's work may still be under
 * way. */
static enum spw_err probe(struct spw_backend_copier *copier, uint64_t to, uint64_t from,
                          uint64_t bytes, uint32_t *words, bool *ret_busy)
{
    bool pushed;
    CUresult result = spw_backend_fences_enter(copier->fences, copier->context, &pushed);

    if (result != CUDA_SUCCESS) {
        return spw_err_from_driver((int)result);
    }
    result = probe_copy(copier, to, from, bytes, words, PROBE_WORDS * sizeof(*words));
    if (result != CUDA_SUCCESS) {
        *ret_busy = CALL(copier, cuStreamSynchronize, copier->handle) != CUDA_SUCCESS;
    }
    spw_backend_fences_leave(copier->fences, pushed);
    if (result != CUDA_SUCCESS) {
        return spw_err_from_driver((int)result);
    }
    return words[0] == PATTERN && words[PROBE_WORDS - 1] == PATTERN ? SPW_OK : SPW_E_UNSUPPORTED;
}

enum spw_err spw_backend_copier_probe(struct spw_backend_copier *copier, uint64_t to, uint64_t from,
                                      uint64_t bytes, bool *ret_busy)
{
    uint32_t *words = calloc(PROBE_WORDS, sizeof(*words));
    enum spw_err err = words == NULL ? SPW_E_METADATA_NOMEM : open_stream(copier);

    *ret_busy = false;
    if (bytes > PROBE_BYTES) {
        to += bytes - PROBE_BYTES;
        from += bytes - PROBE_BYTES;
        bytes = PROBE_BYTES;
    }
    if (err == SPW_OK) {
        err = probe(copier, to, from, bytes, words, ret_busy);
    }
    if (*ret_busy) {
        spw_keep_for_ever(words);
    } else {
        free(words);
    }
    return err;
}

void spw_backend_copier_forget_context(struct spw_backend_copier *copier, CUcontext context)
{
    if (copier->context == context) {
        copier->handle = NULL;
        copier->context = NULL;
    }
}

void spw_backend_copier_fini(struct spw_backend_copier *copier, bool destroy)
{
    if (destroy && copier->handle != NULL) {
        (void)CALL(copier, cuStreamDestroy_v2, copier->handle);
    }
    copier->handle = NULL;
}
