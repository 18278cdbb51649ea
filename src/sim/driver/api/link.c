/* The linker. It concatenates its PTX inputs to one text, which can be loaded like any image. An
 * input that is not PTX becomes a comment in that text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "sim/driver/api/entry.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/kernels/image_read.h"

struct link {
    CUlinkState handle;
    char *text; /* the result of cuLinkComplete; its terminator is not in `size` */
    size_t size;
};

SIM_API(cuLinkCreate_v2, SIM_CONTEXT,
        (unsigned int numOptions, CUjit_option *options, void **optionValues,
         CUlinkState *stateOut))
{
    struct link *link;

    if (stateOut == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    link = calloc(1, sizeof(*link));
    if (link == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    link->text = calloc(1, 1);
    link->handle = sim_handle_create(SIM_HANDLE_LINK, link);
    if (link->text == NULL || link->handle == NULL) {
        sim_handle_destroy(SIM_HANDLE_LINK, link->handle);
        free(link->text);
        free(link);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *stateOut = link->handle;
    return CUDA_SUCCESS;
}

static CUresult append(struct link *link, const char *data, size_t length)
{
    if (!SPW_RESIZE(&link->text, link->size + length + 2)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(link->text + link->size, data, length);
    link->size += length;
    link->text[link->size++] = '\n';
    link->text[link->size] = '\0';
    return CUDA_SUCCESS;
}

static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t size)
{
    struct link *link = sim_handle_object(SIM_HANDLE_LINK, state);
    char remark[64];

    if (link == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (data == NULL || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (type == CU_JIT_INPUT_PTX) {
        return append(link, data, strnlen(data, size));
    }
    snprintf(remark, sizeof(remark), "// linked input of %zu bytes", size);
    return append(link, remark, strlen(remark));
}

SIM_API(cuLinkAddData_v2, SIM_CONTEXT,
        (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
         unsigned int numOptions, CUjit_option *options, void **optionValues))
{
    return add(state, type, data, size);
}

SIM_API(cuLinkAddFile_v2, SIM_CONTEXT,
        (CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
         CUjit_option *options, void **optionValues))
{
    void *data;
    size_t size;
    CUresult result = sim_image_read_file(path, &data, &size);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = add(state, type, data, strlen(data) + 1);
    free(data);
    return result;
}

SIM_API(cuLinkComplete, SIM_CONTEXT, (CUlinkState state, void **cubinOut, size_t *sizeOut))
{
    const struct link *link = sim_handle_object(SIM_HANDLE_LINK, state);

    if (link == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (cubinOut == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *cubinOut = link->text;
    if (sizeOut != NULL) {
        *sizeOut = link->size + 1;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuLinkDestroy, SIM_CONTEXT, (CUlinkState state))
{
    struct link *link = sim_handle_object(SIM_HANDLE_LINK, state);

    if (link == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_handle_destroy(SIM_HANDLE_LINK, link->handle);
    free(link->text);
    free(link);
    return CUDA_SUCCESS;
}
