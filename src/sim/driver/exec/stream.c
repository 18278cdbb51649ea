#include "sim/driver/exec/stream.h"

#include <stdlib.h>

#include "sim/driver/core/calls.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/work_context.h"

static unsigned long long last_id;

struct sim_stream *sim_stream_new(CUcontext ctx, enum sim_stream_role role, unsigned int flags)
{
    struct sim_stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL) {
        return NULL;
    }
    stream->ctx = ctx;
    stream->role = role;
    stream->flags = flags;
    stream->id = ++last_id;
    stream->refs = 1;
    stream->sync_policy = CU_SYNC_POLICY_AUTO;
    stream->place = ctx->work->end != NULL ? ctx->work->end : &ctx->work->streams;
    *stream->place = stream;
    ctx->work->end = &stream->next;
    return stream;
}

CUresult sim_stream_create(CUcontext ctx, unsigned int flags, int priority, CUstream *ret_stream)
{
    struct sim_stream *stream;

    if (ret_stream == NULL || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    stream = sim_stream_new(ctx, SIM_STREAM_USER, flags);
    if (stream == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->handle = sim_handle_create(SIM_HANDLE_STREAM, stream);
    if (stream->handle == NULL) {
        sim_stream_retire(stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->priority = priority < SIM_PRIORITY_GREATEST ? SIM_PRIORITY_GREATEST
                       : priority > SIM_PRIORITY_LEAST  ? SIM_PRIORITY_LEAST
                                                        : priority;
    sim_note("stream=%llu", stream->id);
    *ret_stream = stream->handle;
    return CUDA_SUCCESS;
}

struct sim_stream *sim_stream_ref(struct sim_stream *stream)
{
    stream->refs++;
    return stream;
}

void sim_stream_unref(struct sim_stream *stream)
{
    if (--stream->refs == 0) {
        free(stream);
    }
}

static void unlink_from_context(struct sim_stream *stream)
{
    *stream->place = stream->next;
    if (stream->next != NULL) {
        stream->next->place = stream->place;
    } else {
        stream->ctx->work->end = stream->place;
    }
    stream->next = NULL;
    stream->ctx = NULL;
    sim_stream_unref(stream);
}

void sim_stream_settle(struct sim_stream *stream)
{
    if (stream->retired && stream->first == NULL && stream->ctx != NULL) {
        unlink_from_context(stream);
    }
}

void sim_stream_retire(struct sim_stream *stream)
{
    sim_handle_destroy(SIM_HANDLE_STREAM, stream->handle);
    stream->handle = NULL;
    stream->retired = true;
    sim_stream_settle(stream);
}

bool sim_stream_is_blocking(const struct sim_stream *stream)
{
    return (stream->role == SIM_STREAM_USER || stream->role == SIM_STREAM_PER_THREAD) &&
           (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

bool sim_stream_is_busy(const struct sim_stream *stream)
{
    if (stream->first != NULL) {
        return true;
    }
    if (stream->role != SIM_STREAM_LEGACY) {
        return false;
    }
    for (const struct sim_stream *other = stream->ctx->work->streams; other; other = other->next) {
        if (sim_stream_is_blocking(other) && other->first != NULL) {
            return true;
        }
    }
    return false;
}

int sim_stream_device(const struct sim_stream *stream)
{
    return stream->ctx->device->ordinal;
}

CUcontext sim_stream_ctx(const struct sim_stream *stream)
{
    return stream->ctx;
}

unsigned long long sim_stream_id(const struct sim_stream *stream)
{
    return stream->id;
}

bool sim_stream_is_capturing(const struct sim_stream *stream)
{
    return stream->capture != NULL;
}

/* The calling thread's default stream of the context, created at its first use. */
static struct sim_stream *per_thread_stream(CUcontext ctx)
{
    uint64_t thread = sim_thread_id();
    struct sim_stream *stream;

    for (stream = ctx->work->streams; stream != NULL; stream = stream->next) {
        if (stream->role == SIM_STREAM_PER_THREAD && stream->thread == thread) {
            return stream;
        }
    }
    stream = sim_stream_new(ctx, SIM_STREAM_PER_THREAD, CU_STREAM_DEFAULT);
    if (stream != NULL) {
        stream->thread = thread;
    }
    return stream;
}

static CUresult resolve_default(bool per_thread, struct sim_stream **ret_stream)
{
    CUcontext ctx;
    CUresult result = sim_ctx_require(&ctx);
    struct sim_stream *stream;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    stream = per_thread ? per_thread_stream(ctx) : ctx->work->legacy;
    if (stream == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_stream = stream;
    return CUDA_SUCCESS;
}

CUresult sim_stream_resolve(CUstream handle, bool ptsz, struct sim_stream **ret_stream)
{
    struct sim_stream *stream;

    if (handle == NULL) {
        return resolve_default(ptsz, ret_stream);
    }
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        return resolve_default(handle == CU_STREAM_PER_THREAD, ret_stream);
    }
    stream = sim_handle_object(SIM_HANDLE_STREAM, handle);
    if (stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream->ctx->sticky != CUDA_SUCCESS) {
        return stream->ctx->sticky;
    }
    *ret_stream = stream;
    return CUDA_SUCCESS;
}
