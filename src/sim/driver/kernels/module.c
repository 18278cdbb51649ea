#include "sim/driver/kernels/module.h"

#include <stdlib.h>
#include <string.h>

#include "sim/driver/core/budget.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/work_context.h"
#include "sim/driver/memory/alloc.h"
#include "sim/driver/memory/content.h"

/* The maximum shared memory of a block without cuFuncSetAttribute. */
#define SHARED_PER_BLOCK 49152

/* About the number of registers that a compiler chooses for an ordinary kernel. */
#define REGISTERS_PER_THREAD 32

void sim_attributes_init(const struct sim_kernel_info *info, const struct sim_image *image,
                         const struct sim_device *device, int *ret_attributes)
{
    const struct spw_gpu_profile *profile = device->profile;
    int version = profile->major * 10 + profile->minor;
    int shared = (int)info->shared_bytes;

    memset(ret_attributes, 0, CU_FUNC_ATTRIBUTE_MAX * sizeof(ret_attributes[0]));
    ret_attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = (int)info->max_threads;
    ret_attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = shared;
    ret_attributes[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)info->local_bytes;
    ret_attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = REGISTERS_PER_THREAD;
    ret_attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] =
        image->ptx_version > 0 ? (int)image->ptx_version : version;
    ret_attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] =
        image->binary_version > 0 ? (int)image->binary_version : version;
    ret_attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] =
        shared < SHARED_PER_BLOCK ? SHARED_PER_BLOCK - shared : 0;
    ret_attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] =
        CU_SHAREDMEM_CARVEOUT_DEFAULT;
}

/* Code memory is charged in multiples of this. cuda.h does not define the multiple, and drivers
 * differ. */
#define CODE_PIECE ((size_t)64 << 10)

struct module_global {
    struct module_global *next;
    char *name;
    CUdeviceptr address;
};

static CUresult take_memory(struct sim_module *module)
{
    struct sim_device *device = module->ctx->device;
    CUresult result;

    module->code_bytes = (module->image->code_bytes + CODE_PIECE - 1) / CODE_PIECE * CODE_PIECE;
    result = sim_budget_charge(device, module->code_bytes, SIM_USE_OWN);
    if (result != CUDA_SUCCESS || module->image->data_bytes == 0) {
        return result;
    }
    result = sim_mem_driver_alloc(device, module->image->data_bytes, &module->data);
    if (result != CUDA_SUCCESS) {
        sim_budget_refund(device, module->code_bytes, SIM_USE_OWN);
        return result;
    }
    sim_mem_fill(module->data, 0, 1, module->image->data_bytes);
    return CUDA_SUCCESS;
}

CUresult sim_module_load(CUcontext ctx, struct sim_image *image, struct sim_library *library,
                         struct sim_module **ret_module)
{
    struct sim_module *module = calloc(1, sizeof(*module));
    CUresult result;

    if (module == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->ctx = ctx;
    module->library = library;
    module->image = image;
    module->handle = sim_handle_create(SIM_HANDLE_MODULE, module);
    result = module->handle == NULL ? CUDA_ERROR_OUT_OF_MEMORY : take_memory(module);
    if (result != CUDA_SUCCESS) {
        sim_handle_destroy(SIM_HANDLE_MODULE, module->handle);
        free(module);
        return result;
    }
    sim_image_ref(image);
    module->next = ctx->work->modules;
    ctx->work->modules = module;
    *ret_module = module;
    return CUDA_SUCCESS;
}

static void free_functions(struct sim_module *module)
{
    while (module->functions != NULL) {
        struct sim_function *function = module->functions;

        module->functions = function->next;
        sim_handle_destroy(SIM_HANDLE_FUNCTION, function->handle);
        free(function);
    }
}

static void free_globals(struct sim_module *module)
{
    while (module->globals != NULL) {
        struct module_global *global = module->globals;

        module->globals = global->next;
        sim_mem_driver_free(global->address);
        free(global->name);
        free(global);
    }
}

void sim_module_unload(struct sim_module *module)
{
    struct sim_module **place = &module->ctx->work->modules;

    while (*place != module) {
        place = &(*place)->next;
    }
    *place = module->next;
    free_functions(module);
    free_globals(module);
    if (module->data != 0) {
        sim_mem_driver_free(module->data);
    }
    sim_budget_refund(module->ctx->device, module->code_bytes, SIM_USE_OWN);
    sim_handle_destroy(SIM_HANDLE_MODULE, module->handle);
    sim_image_unref(module->image);
    free(module);
}

/* Copies the attributes of the function's CUkernel, if cuLibraryGetKernel has returned one, or sets
 * defaults. */
static void set_initial_attributes(struct sim_function *function)
{
    const struct sim_module *module = function->module;
    const struct sim_kernel *kernel = module->library == NULL ? NULL : module->library->kernels;

    while (kernel != NULL && kernel->info != function->info) {
        kernel = kernel->next;
    }
    if (kernel != NULL) {
        memcpy(function->attributes, kernel->attributes, sizeof(function->attributes));
    } else {
        sim_attributes_init(function->info, module->image, module->ctx->device,
                            function->attributes);
    }
}

CUresult sim_module_function(struct sim_module *module, const char *name,
                             struct sim_function **ret_function)
{
    const struct sim_kernel_info *info;
    struct sim_function *function = module->functions;

    while (function != NULL && strcmp(function->info->name, name) != 0) {
        function = function->next;
    }
    if (function != NULL) {
        *ret_function = function;
        return CUDA_SUCCESS;
    }
    if (name[0] == '\0') {
        return CUDA_ERROR_NOT_FOUND;
    }
    info = sim_image_kernel(module->image, name);
    function = calloc(1, sizeof(*function));
    if (info == NULL || function == NULL) {
        free(function);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    function->handle = sim_handle_create(SIM_HANDLE_FUNCTION, function);
    if (function->handle == NULL) {
        free(function);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    function->module = module;
    function->info = info;
    set_initial_attributes(function);
    function->next = module->functions;
    module->functions = function;
    *ret_function = function;
    return CUDA_SUCCESS;
}

static CUresult make_up_global(struct sim_module *module, const char *name,
                               CUdeviceptr *ret_address)
{
    struct module_global *global = calloc(1, sizeof(*global));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (global != NULL) {
        global->name = strdup(name);
    }
    if (global != NULL && global->name != NULL) {
        result =
            sim_mem_driver_alloc(module->ctx->device, SIM_UNKNOWN_GLOBAL_BYTES, &global->address);
    }
    if (result != CUDA_SUCCESS) {
        if (global != NULL) {
            free(global->name);
        }
        free(global);
        return result;
    }
    global->next = module->globals;
    module->globals = global;
    *ret_address = global->address;
    return CUDA_SUCCESS;
}

CUresult sim_module_global(struct sim_module *module, const char *name, CUdeviceptr *ret_address,
                           size_t *ret_size)
{
    const struct sim_global *declared = sim_image_global(module->image, name);
    const struct module_global *global = module->globals;

    if (declared != NULL) {
        *ret_address = module->data + declared->offset;
        *ret_size = declared->size;
        return CUDA_SUCCESS;
    }
    if (module->image->globals_known || name[0] == '\0') {
        return CUDA_ERROR_NOT_FOUND;
    }
    *ret_size = SIM_UNKNOWN_GLOBAL_BYTES;
    while (global != NULL && strcmp(global->name, name) != 0) {
        global = global->next;
    }
    if (global != NULL) {
        *ret_address = global->address;
        return CUDA_SUCCESS;
    }
    return make_up_global(module, name, ret_address);
}

CUresult sim_library_module(struct sim_library *library, CUcontext ctx,
                            struct sim_module **ret_module)
{
    for (struct sim_module *module = ctx->work->modules; module; module = module->next) {
        if (module->library == library) {
            *ret_module = module;
            return CUDA_SUCCESS;
        }
    }
    return sim_module_load(ctx, library->image, library, ret_module);
}

CUresult sim_function_resolve(CUfunction handle, CUcontext ctx, struct sim_function **ret_function)
{
    struct sim_function *function = sim_handle_object(SIM_HANDLE_FUNCTION, handle);
    const struct sim_kernel *kernel;
    struct sim_module *module;
    CUresult result;

    if (function != NULL) {
        *ret_function = function;
        return CUDA_SUCCESS;
    }
    kernel = sim_handle_object(SIM_HANDLE_KERNEL, handle);
    if (kernel == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    result = sim_library_module(kernel->library, ctx, &module);
    return result == CUDA_SUCCESS ? sim_module_function(module, kernel->info->name, ret_function)
                                  : result;
}

CUresult sim_function_ctx(CUfunction handle, CUcontext *ctx)
{
    const struct sim_function *function = sim_handle_object(SIM_HANDLE_FUNCTION, handle);

    if (function != NULL) {
        *ctx = function->module->ctx;
        return CUDA_SUCCESS;
    }
    return handle == NULL || sim_handle_object(SIM_HANDLE_KERNEL, handle) != NULL
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
}
