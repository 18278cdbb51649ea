/* Libraries and their kernels: code that belongs to no context. */
#include "sim/driver/core/context.h"
#include "sim/driver/kernels/module.h"

#include <stdlib.h>
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/work_context.h"
#include "sim/driver/kernels/image_read.h"
#include "sim/driver/memory/alloc.h"

/* A managed variable: the host and all contexts share it. */
struct sim_managed {
    struct sim_managed *next; /* in its library's list */
    char *name;
    struct sim_block *block;
};

static CUresult load(CUlibrary *ret_library, const void *code, size_t size, bool kept)
{
    struct sim_library *library;
    CUresult result;

    if (ret_library == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    library = calloc(1, sizeof(*library));
    if (library == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = sim_image_read(code, size, kept, &library->image);
    if (result != CUDA_SUCCESS) {
        free(library);
        return result;
    }
    library->handle = sim_handle_create(SIM_HANDLE_LIBRARY, library);
    if (library->handle == NULL) {
        sim_image_unref(library->image);
        free(library);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_library = library->handle;
    return CUDA_SUCCESS;
}

/* True if the caller guarantees that the code stays in place until the library is unloaded. */
static bool is_kept(const CUlibraryOption *options, unsigned int count)
{
    for (unsigned int i = 0; options != NULL && i < count; i++) {
        if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) {
            return true;
        }
    }
    return false;
}

SIM_API(cuLibraryLoadData, SIM_INITIALIZED,
        (CUlibrary * library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
         unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
         unsigned int numLibraryOptions))
{
    return load(library, code, SIM_IMAGE_ANY_SIZE, is_kept(libraryOptions, numLibraryOptions));
}

SIM_API(cuLibraryLoadFromFile, SIM_INITIALIZED,
        (CUlibrary * library, const char *fileName, CUjit_option *jitOptions,
         void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
         void **libraryOptionValues, unsigned int numLibraryOptions))
{
    void *data;
    size_t size;
    CUresult result = sim_image_read_file(fileName, &data, &size);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = load(library, data, size, /* kept */ false);
    free(data);
    return result;
}

static void unload_module(const struct sim_library *library, struct sim_work_context *work)
{
    struct sim_module *module = work->modules;

    while (module != NULL && module->library != library) {
        module = module->next;
    }
    if (module != NULL) {
        sim_module_unload(module);
    }
}

static void free_managed(struct sim_library *library)
{
    while (library->managed != NULL) {
        struct sim_managed *variable = library->managed;

        library->managed = variable->next;
        sim_alloc_destroy(variable->block);
        free(variable->name);
        free(variable);
    }
}

SIM_API(cuLibraryUnload, SIM_INITIALIZED, (CUlibrary library))
{
    struct sim_library *found = sim_handle_object(SIM_HANDLE_LIBRARY, library);

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (struct sim_work_context *work = sim_work_first(); work != NULL; work = work->next) {
        unload_module(found, work);
    }
    while (found->kernels != NULL) {
        struct sim_kernel *kernel = found->kernels;

        found->kernels = kernel->next;
        sim_handle_destroy(SIM_HANDLE_KERNEL, kernel->handle);
        free(kernel);
    }
    free_managed(found);
    sim_handle_destroy(SIM_HANDLE_LIBRARY, found->handle);
    sim_image_unref(found->image);
    free(found);
    return CUDA_SUCCESS;
}

/* The kernel of that name, created at the first lookup. CUDA_ERROR_NOT_FOUND for an empty name,
 * CUDA_ERROR_OUT_OF_MEMORY. */
static CUresult library_kernel(struct sim_library *library, const char *name,
                               struct sim_kernel **ret_kernel)
{
    const struct sim_kernel_info *info;
    struct sim_kernel *kernel = library->kernels;

    while (kernel != NULL && strcmp(kernel->info->name, name) != 0) {
        kernel = kernel->next;
    }
    if (kernel != NULL) {
        *ret_kernel = kernel;
        return CUDA_SUCCESS;
    }
    if (name[0] == '\0') {
        return CUDA_ERROR_NOT_FOUND;
    }
    info = sim_image_kernel(library->image, name);
    kernel = calloc(1, sizeof(*kernel));
    if (info == NULL || kernel == NULL) {
        free(kernel);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    kernel->handle = sim_handle_create(SIM_HANDLE_KERNEL, kernel);
    if (kernel->handle == NULL) {
        free(kernel);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    kernel->library = library;
    kernel->info = info;
    sim_attributes_init(info, library->image, sim_device_get(0), kernel->attributes);
    kernel->next = library->kernels;
    library->kernels = kernel;
    *ret_kernel = kernel;
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetKernel, SIM_INITIALIZED,
        (CUkernel * pKernel, CUlibrary library, const char *name))
{
    struct sim_library *found = sim_handle_object(SIM_HANDLE_LIBRARY, library);
    struct sim_kernel *kernel;
    CUresult result;

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (pKernel == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_note("name=%s", name);
    result = library_kernel(found, name, &kernel);
    if (result == CUDA_SUCCESS) {
        *pKernel = kernel->handle;
    }
    return result;
}

SIM_API(cuLibraryGetKernelCount, SIM_INITIALIZED, (unsigned int *count, CUlibrary lib))
{
    const struct sim_library *library = sim_handle_object(SIM_HANDLE_LIBRARY, lib);

    if (library == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = (unsigned int)library->image->declared_count;
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryEnumerateKernels, SIM_INITIALIZED,
        (CUkernel * kernels, unsigned int numKernels, CUlibrary lib))
{
    struct sim_library *library = sim_handle_object(SIM_HANDLE_LIBRARY, lib);
    const struct sim_image_kernel *declared;

    if (library == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (kernels == NULL || numKernels == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    declared = library->image->kernels;
    for (unsigned int i = 0; i < numKernels && i < library->image->declared_count; i++) {
        struct sim_kernel *kernel;
        CUresult result = library_kernel(library, declared->info.name, &kernel);

        if (result != CUDA_SUCCESS) {
            return result;
        }
        kernels[i] = kernel->handle;
        declared = declared->next;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetModule, SIM_CONTEXT, (CUmodule * pMod, CUlibrary library))
{
    struct sim_library *found = sim_handle_object(SIM_HANDLE_LIBRARY, library);
    struct sim_module *module;
    CUresult result;

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (pMod == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_library_module(found, sim_ctx_current(), &module);
    if (result == CUDA_SUCCESS) {
        *pMod = module->handle;
    }
    return result;
}

SIM_API(cuLibraryGetGlobal, SIM_CONTEXT,
        (CUdeviceptr * dptr, size_t *bytes, CUlibrary library, const char *name))
{
    struct sim_library *found = sim_handle_object(SIM_HANDLE_LIBRARY, library);
    struct sim_module *module;
    CUdeviceptr address;
    size_t size;
    CUresult result;

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (name == NULL || (dptr == NULL && bytes == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = sim_library_module(found, sim_ctx_current(), &module);
    if (result == CUDA_SUCCESS) {
        result = sim_module_global(module, name, &address, &size);
    }
    if (result == CUDA_SUCCESS && dptr != NULL) {
        *dptr = address;
    }
    if (result == CUDA_SUCCESS && bytes != NULL) {
        *bytes = size;
    }
    return result;
}

static CUresult create_managed(struct sim_library *library, const char *name, size_t bytes,
                               struct sim_managed **ret_variable)
{
    struct sim_managed *variable = calloc(1, sizeof(*variable));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (variable == NULL) {
        return result;
    }
    variable->name = strdup(name);
    if (variable->name != NULL) {
        result = sim_alloc_host(sim_device_get(0), bytes, SIM_BLOCK_MANAGED, &variable->block);
    }
    if (result != CUDA_SUCCESS) {
        free(variable->name);
        free(variable);
        return result;
    }
    variable->next = library->managed;
    library->managed = variable;
    *ret_variable = variable;
    return CUDA_SUCCESS;
}

/* Managed variables are not marked in the parts of an image that are read here, so any global
 * variable counts as managed. */
static CUresult find_managed(struct sim_library *library, const char *name,
                             struct sim_managed **ret_variable)
{
    const struct sim_global *declared = sim_image_global(library->image, name);
    struct sim_managed *variable = library->managed;

    while (variable != NULL && strcmp(variable->name, name) != 0) {
        variable = variable->next;
    }
    if (variable != NULL) {
        *ret_variable = variable;
        return CUDA_SUCCESS;
    }
    if (declared == NULL && (library->image->globals_known || name[0] == '\0')) {
        return CUDA_ERROR_NOT_FOUND;
    }
    return create_managed(
        library, name, declared != NULL ? declared->size : SIM_UNKNOWN_GLOBAL_BYTES, ret_variable);
}

SIM_API(cuLibraryGetManaged, SIM_INITIALIZED,
        (CUdeviceptr * dptr, size_t *bytes, CUlibrary library, const char *name))
{
    struct sim_library *found = sim_handle_object(SIM_HANDLE_LIBRARY, library);
    struct sim_managed *variable;
    CUresult result;

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (name == NULL || (dptr == NULL && bytes == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = find_managed(found, name, &variable);
    if (result == CUDA_SUCCESS && dptr != NULL) {
        *dptr = variable->block->range.start;
    }
    if (result == CUDA_SUCCESS && bytes != NULL) {
        *bytes = variable->block->size;
    }
    return result;
}

SIM_API(cuKernelGetFunction, SIM_CONTEXT, (CUfunction * pFunc, CUkernel kernel))
{
    struct sim_function *function;
    CUresult result;

    if (pFunc == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_handle_object(SIM_HANDLE_KERNEL, kernel) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    result = sim_function_resolve((CUfunction)kernel, sim_ctx_current(), &function);
    if (result == CUDA_SUCCESS) {
        *pFunc = function->handle;
    }
    return result;
}

SIM_API(cuKernelGetLibrary, SIM_INITIALIZED, (CUlibrary * pLib, CUkernel kernel))
{
    const struct sim_kernel *found = sim_handle_object(SIM_HANDLE_KERNEL, kernel);

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (pLib == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pLib = found->library->handle;
    return CUDA_SUCCESS;
}

SIM_API(cuKernelGetName, SIM_INITIALIZED, (const char **name, CUkernel hfunc))
{
    const struct sim_kernel *found = sim_handle_object(SIM_HANDLE_KERNEL, hfunc);

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *name = found->info->name;
    return CUDA_SUCCESS;
}
