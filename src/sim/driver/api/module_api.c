/* Exported functions on modules. */
#include "sim/driver/api/entry.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/graph/stream_capture.h"
#include "sim/driver/kernels/image_read.h"
#include "sim/driver/kernels/module.h"

#include <stdlib.h>

static CUresult load(CUmodule *ret_module, const void *data, size_t size)
{
    struct sim_module *module;
    struct sim_image *image;
    CUresult result = sim_capture_unsafe();

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (ret_module == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_image_read(data, size, /* kept */ false, &image);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = sim_module_load(sim_ctx_current(), image, NULL, &module);
    sim_image_unref(image);
    if (result == CUDA_SUCCESS) {
        *ret_module = module->handle;
    }
    return result;
}

SIM_API(cuModuleLoadData, SIM_CONTEXT, (CUmodule * module, const void *image))
{
    return load(module, image, SIM_IMAGE_ANY_SIZE);
}

SIM_API(cuModuleLoadDataEx, SIM_CONTEXT,
        (CUmodule * module, const void *image, unsigned int numOptions, CUjit_option *options,
         void **optionValues))
{
    return load(module, image, SIM_IMAGE_ANY_SIZE);
}

SIM_API(cuModuleLoadFatBinary, SIM_CONTEXT, (CUmodule * module, const void *fatCubin))
{
    return load(module, fatCubin, SIM_IMAGE_ANY_SIZE);
}

SIM_API(cuModuleLoad, SIM_CONTEXT, (CUmodule * module, const char *fname))
{
    void *data;
    size_t size;
    CUresult result = sim_image_read_file(fname, &data, &size);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = load(module, data, size);
    free(data);
    return result;
}

SIM_API(cuModuleUnload, SIM_CONTEXT, (CUmodule hmod))
{
    struct sim_module *module = sim_handle_object(SIM_HANDLE_MODULE, hmod);
    CUresult result = sim_capture_unsafe();

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    /* A library unloads its own modules. */
    if (module->library != NULL) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    sim_module_unload(module);
    return CUDA_SUCCESS;
}

SIM_API(cuModuleGetFunction, SIM_CONTEXT, (CUfunction * hfunc, CUmodule hmod, const char *name))
{
    struct sim_module *module = sim_handle_object(SIM_HANDLE_MODULE, hmod);
    struct sim_function *function;
    CUresult result;

    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (hfunc == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_note("name=%s", name);
    result = sim_module_function(module, name, &function);
    if (result == CUDA_SUCCESS) {
        *hfunc = function->handle;
    }
    return result;
}

SIM_API(cuModuleGetFunctionCount, SIM_CONTEXT, (unsigned int *count, CUmodule mod))
{
    const struct sim_module *module = sim_handle_object(SIM_HANDLE_MODULE, mod);

    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = (unsigned int)module->image->declared_count;
    return CUDA_SUCCESS;
}

SIM_API(cuModuleEnumerateFunctions, SIM_CONTEXT,
        (CUfunction * functions, unsigned int numFunctions, CUmodule mod))
{
    struct sim_module *module = sim_handle_object(SIM_HANDLE_MODULE, mod);
    const struct sim_image_kernel *kernel;

    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (functions == NULL || numFunctions == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    kernel = module->image->kernels;
    for (unsigned int i = 0; i < numFunctions && i < module->image->declared_count; i++) {
        struct sim_function *function;
        CUresult result = sim_module_function(module, kernel->info.name, &function);

        if (result != CUDA_SUCCESS) {
            return result;
        }
        functions[i] = function->handle;
        kernel = kernel->next;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuModuleGetGlobal_v2, SIM_CONTEXT,
        (CUdeviceptr * dptr, size_t *bytes, CUmodule hmod, const char *name))
{
    struct sim_module *module = sim_handle_object(SIM_HANDLE_MODULE, hmod);
    CUdeviceptr address;
    size_t size;
    CUresult result;

    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (name == NULL || (dptr == NULL && bytes == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_module_global(module, name, &address, &size);
    if (result == CUDA_SUCCESS && dptr != NULL) {
        *dptr = address;
    }
    if (result == CUDA_SUCCESS && bytes != NULL) {
        *bytes = size;
    }
    return result;
}

/* Follows the real driver's environment variable; the default is lazy loading. */
SIM_API(cuModuleGetLoadingMode, SIM_INITIALIZED, (CUmoduleLoadingMode * mode))
{
    const char *text = getenv("CUDA_MODULE_LOADING");

    if (mode == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = text != NULL && text[0] == 'E' ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}
