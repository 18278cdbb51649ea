/* Attributes of functions and kernels. */
#include "sim/driver/core/context.h"
#include "sim/driver/kernels/module.h"

#include <signal.h>
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/exec/work_context.h"

/* Checks a new value of an attribute. */
static CUresult check_setting(const struct sim_kernel_info *info, const struct sim_device *device,
                              CUfunction_attribute attrib, int value)
{
    int most = device->profile->shared_per_block_optin - (int)info->shared_bytes;

    switch (attrib) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return value < 0 || value > most ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return value < CU_SHAREDMEM_CARVEOUT_DEFAULT || value > CU_SHAREDMEM_CARVEOUT_MAX_SHARED
                   ? CUDA_ERROR_INVALID_VALUE
                   : CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        return value < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The function of a CUfunction. For a CUkernel passed as a CUfunction, its function in the current
 * context. */
static CUresult resolve(CUfunction handle, struct sim_function **ret_function)
{
    return sim_function_resolve(handle, sim_ctx_current(), ret_function);
}

SIM_API(cuFuncGetAttribute, SIM_CONTEXT, (int *pi, CUfunction_attribute attrib, CUfunction hfunc))
{
    struct sim_function *function;
    CUresult result = resolve(hfunc, &function);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (pi == NULL || attrib >= CU_FUNC_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pi = function->attributes[attrib];
    return CUDA_SUCCESS;
}

SIM_API(cuFuncSetAttribute, SIM_CONTEXT, (CUfunction hfunc, CUfunction_attribute attrib, int value))
{
    struct sim_function *function;
    CUresult result = resolve(hfunc, &function);

    if (result == CUDA_SUCCESS) {
        result = check_setting(function->info, function->module->ctx->device, attrib, value);
    }
    if (result == CUDA_SUCCESS) {
        function->attributes[attrib] = value;
        function->own |= 1U << attrib;
    }
    return result;
}

/* Also sets the attribute on the kernel's functions of that device, unless cuFuncSetAttribute has
 * set it. */
static void set_on_functions(const struct sim_kernel *kernel, const struct sim_device *device,
                             CUfunction_attribute attrib, int value)
{
    for (struct sim_work_context *work = sim_work_first(); work != NULL; work = work->next) {
        if (work->ctx->device != device) {
            continue;
        }
        for (struct sim_module *module = work->modules; module; module = module->next) {
            for (struct sim_function *f = module->functions; f != NULL; f = f->next) {
                if (f->info == kernel->info && (f->own & 1U << attrib) == 0) {
                    f->attributes[attrib] = value;
                }
            }
        }
    }
}

SIM_API(cuKernelGetAttribute, SIM_INITIALIZED,
        (int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev))
{
    const struct sim_kernel *found = sim_handle_object(SIM_HANDLE_KERNEL, kernel);

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (sim_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (pi == NULL || attrib >= CU_FUNC_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pi = found->attributes[attrib];
    return CUDA_SUCCESS;
}

SIM_API(cuKernelSetAttribute, SIM_INITIALIZED,
        (CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev))
{
    struct sim_kernel *found = sim_handle_object(SIM_HANDLE_KERNEL, kernel);
    const struct sim_device *device = sim_device_get(dev);
    CUresult result;

    if (found == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    result = check_setting(found->info, device, attrib, val);
    if (result == CUDA_SUCCESS) {
        found->attributes[attrib] = val;
        set_on_functions(found, device, attrib, val);
    }
    return result;
}

/* Cache preferences are hints. */
SIM_API(cuFuncSetCacheConfig, SIM_CONTEXT, (CUfunction hfunc, CUfunc_cache config))
{
    struct sim_function *function;
    CUresult result = resolve(hfunc, &function);

    if (result == CUDA_SUCCESS && config > CU_FUNC_CACHE_PREFER_EQUAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return result;
}

SIM_API(cuFuncSetSharedMemConfig, SIM_CONTEXT, (CUfunction hfunc, CUsharedconfig config))
{
    struct sim_function *function;
    CUresult result = resolve(hfunc, &function);

    if (result == CUDA_SUCCESS && config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return result;
}

SIM_API(cuKernelSetCacheConfig, SIM_INITIALIZED,
        (CUkernel kernel, CUfunc_cache config, CUdevice dev))
{
    if (sim_handle_object(SIM_HANDLE_KERNEL, kernel) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (sim_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIM_API(cuFuncGetModule, SIM_CONTEXT, (CUmodule * hmod, CUfunction hfunc))
{
    struct sim_function *function;
    CUresult result = resolve(hfunc, &function);

    if (result != CUDA_SUCCESS || hmod == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *hmod = function->module->handle;
    return CUDA_SUCCESS;
}

SIM_API(cuFuncGetName, SIM_CONTEXT, (const char **name, CUfunction hfunc))
{
    struct sim_function *function;
    CUresult result = resolve(hfunc, &function);

    if (result != CUDA_SUCCESS || name == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *name = function->info->name;
    return CUDA_SUCCESS;
}

/* Fails for all parameters if the size of one is unknown, because the offsets depend on all sizes.
 * A real driver knows the sizes. */
static CUresult param_info(const struct sim_kernel_info *info, size_t index, size_t *ret_offset,
                           size_t *ret_size)
{
    if (!info->params_known) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (ret_offset == NULL || index >= info->param_count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_offset = info->params[index].offset;
    if (ret_size != NULL) {
        *ret_size = info->params[index].size;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuFuncGetParamInfo, SIM_CONTEXT,
        (CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize))
{
    struct sim_function *function;
    CUresult result;

    if (sim_options()->handles != SPW_HANDLES_MIXED &&
        sim_handle_object(SIM_HANDLE_FUNCTION, func) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    result = resolve(func, &function);
    return result == CUDA_SUCCESS ? param_info(function->info, paramIndex, paramOffset, paramSize)
                                  : result;
}

SIM_API(cuKernelGetParamInfo, SIM_INITIALIZED,
        (CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize))
{
    const struct sim_kernel *found = sim_handle_object(SIM_HANDLE_KERNEL, kernel);

    if (found == NULL && sim_options()->handles == SPW_HANDLES_UNCHECKED) {
        (void)raise(SIGSEGV); /* a driver that does not check handles dereferences any number */
    }
    return found == NULL ? CUDA_ERROR_INVALID_HANDLE
                         : param_info(found->info, paramIndex, paramOffset, paramSize);
}

/* A function is loaded with its module. */
SIM_API(cuFuncIsLoaded, SIM_CONTEXT, (CUfunctionLoadingState * state, CUfunction function))
{
    struct sim_function *found;
    CUresult result = resolve(function, &found);

    if (result != CUDA_SUCCESS || state == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

SIM_API(cuFuncLoad, SIM_CONTEXT, (CUfunction function))
{
    struct sim_function *found;

    return resolve(function, &found);
}
