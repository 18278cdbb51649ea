#include "sim/driver/exec/fence.h"

#include <stdlib.h>

#include "common/grow.h"

bool sim_fence_is_done(const struct sim_fence *fence)
{
    return fence->stream == NULL || fence->stream->completed >= fence->number;
}

CUresult sim_fences_add(struct sim_fences *fences, struct sim_stream *stream, uint64_t number)
{
    if (stream->completed >= number) {
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < fences->count; i++) {
        if (fences->list[i].stream == stream) {
            if (fences->list[i].number < number) {
                fences->list[i].number = number;
            }
            return CUDA_SUCCESS;
        }
    }
    if (!SPW_RESIZE(&fences->list, fences->count + 1)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fences->list[fences->count++] = (struct sim_fence){sim_stream_ref(stream), number};
    return CUDA_SUCCESS;
}

CUresult sim_fences_add_all(struct sim_fences *fences, const struct sim_fences *more)
{
    for (size_t i = 0; i < more->count; i++) {
        CUresult result = sim_fences_add(fences, more->list[i].stream, more->list[i].number);

        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

bool sim_fences_prune(struct sim_fences *fences)
{
    size_t kept = 0;

    for (size_t i = 0; i < fences->count; i++) {
        if (sim_fence_is_done(&fences->list[i])) {
            sim_stream_unref(fences->list[i].stream);
        } else {
            fences->list[kept++] = fences->list[i];
        }
    }
    fences->count = kept;
    return kept == 0;
}

void sim_fences_fini(struct sim_fences *fences)
{
    for (size_t i = 0; i < fences->count; i++) {
        sim_stream_unref(fences->list[i].stream);
    }
    free(fences->list);
    fences->list = NULL;
    fences->count = 0;
}
