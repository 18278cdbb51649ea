#include "sim/runtime/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct simrt_error_text {
    cudaError_t error;
    bool sticky;
    const char *name;
    const char *text;
};

static const struct simrt_error_text texts[] = {
#define SIMRT_ERROR(name, text)        {name, false, #name, text},
#define SIMRT_STICKY_ERROR(name, text) {name, true, #name, text},
#include "sim/runtime/errors.def"
#undef SIMRT_ERROR
#undef SIMRT_STICKY_ERROR
};

static _Atomic(unsigned int) resets; /* number of times that all threads' errors were cleared */

static _Thread_local cudaError_t last_error;
static _Thread_local unsigned int last_resets; /* `resets` when last_error was set */

static const struct simrt_error_text *text_of(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].error == error) {
            return &texts[i];
        }
    }
    return NULL;
}

static bool is_sticky(cudaError_t error)
{
    const struct simrt_error_text *text = text_of(error);

    return text != NULL && text->sticky;
}

static cudaError_t peek(void)
{
    if (last_resets != atomic_load(&resets)) {
        last_error = cudaSuccess;
    }
    return last_error;
}

cudaError_t simrt_error_record(cudaError_t error)
{
    if (error != cudaSuccess && !is_sticky(peek())) {
        last_error = error;
        last_resets = atomic_load(&resets);
    }
    return error;
}

void simrt_error_clear_all(void)
{
    (void)atomic_fetch_add(&resets, 1);
}

__attribute__((visibility("default"))) cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
    return peek();
}

__attribute__((visibility("default"))) cudaError_t CUDARTAPI cudaGetLastError(void)
{
    cudaError_t error = peek();

    if (!is_sticky(error)) {
        last_error = cudaSuccess;
    }
    return error;
}

__attribute__((visibility("default"))) const char *CUDARTAPI cudaGetErrorName(cudaError_t error)
{
    const struct simrt_error_text *text = text_of(error);

    return text != NULL ? text->name : "unrecognized error code";
}

__attribute__((visibility("default"))) const char *CUDARTAPI cudaGetErrorString(cudaError_t error)
{
    const struct simrt_error_text *text = text_of(error);

    return text != NULL ? text->text : "unrecognized error code";
}
