/* Green contexts: shares of a device's multiprocessors.
 *
 * A share is only a number: it does not change the time of kernels. By cuda.h, a green context is
 * converted to a primary context that has the resources of the green context. Here the result of
 * the conversion is the primary context itself. A green context uses the default stream of the
 * primary context, and retains the primary context as long as the green context exists. */
#include <stdlib.h>
#include <string.h>

#include "sim/driver/api/entry.h"
#include "sim/driver/api/primary.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/handle_table.h"
#include "sim/driver/exec/stream.h"

/* Data that the driver keeps in the padding of a resource. */
struct origin {
    int device;
    unsigned long long split; /* the split that made the resource; 0: a whole device */
};

struct green {
    CUgreenCtx handle;
    unsigned long long id;
    struct sim_device *device;
    CUdevResource resource;
};

struct descriptor {
    CUdevResource resource;
};

_Static_assert(sizeof(struct origin) <= sizeof(((CUdevResource *)0)->_internal_padding),
               "the origin must fit");

static struct origin origin_of(const CUdevResource *resource)
{
    struct origin origin;

    memcpy(&origin, resource->_internal_padding, sizeof(origin));
    return origin;
}

/* The minimum number of SMs of a part, and the multiple to which the number is rounded. cuda.h
 * defines both for each architecture. */
static unsigned int least_part(struct origin origin)
{
    const struct spw_gpu_profile *profile = sim_device_get(origin.device)->profile;

    return profile->major >= 9 ? 8 : profile->major >= 8 ? 4 : 2;
}

static unsigned int part_alignment(struct origin origin)
{
    return sim_device_get(origin.device)->profile->major >= 9 ? 8 : 2;
}

static CUdevResource new_resource(struct origin origin, unsigned int count)
{
    CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_SM};

    memcpy(resource._internal_padding, &origin, sizeof(origin));
    resource.sm.smCount = count;
#if CUDA_VERSION >= 13000
    resource.sm.minSmPartitionSize = least_part(origin);
    resource.sm.smCoscheduledAlignment = part_alignment(origin);
#endif
    return resource;
}

static CUdevResource whole_device(const struct sim_device *device)
{
    return new_resource((struct origin){device->ordinal, 0},
                        (unsigned int)device->profile->multiprocessors);
}

SIM_API(cuDeviceGetDevResource, SIM_INITIALIZED,
        (CUdevice device, CUdevResource *resource, CUdevResourceType type))
{
    if (resource == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_get(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    *resource = whole_device(sim_device_get(device));
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetDevResource, SIM_INITIALIZED,
        (CUcontext hCtx, CUdevResource *resource, CUdevResourceType type))
{
    if (resource == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_ctx_is_live(hCtx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    *resource = whole_device(hCtx->device);
    return CUDA_SUCCESS;
}

static unsigned int round_up(unsigned int value, unsigned int unit)
{
    return (value + unit - 1) / unit * unit;
}

SIM_API(cuDevSmResourceSplitByCount, SIM_INITIALIZED,
        (CUdevResource * parts, unsigned int *nbGroups, const CUdevResource *input,
         CUdevResource *remaining, unsigned int useFlags, unsigned int minCount))
{
    static unsigned long long splits;
    unsigned int least, size, groups;
    struct origin origin;

    if (nbGroups == NULL || input == NULL || minCount > input->sm.smCount) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (input->type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    origin = origin_of(input);
    least = least_part(origin);
    size = round_up(minCount > least ? minCount : least, part_alignment(origin));
    if ((useFlags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0) {
        size = round_up(minCount > 2 ? minCount : 2, 2);
    }
    groups = input->sm.smCount / size;
    if (parts != NULL) {
        groups = groups < *nbGroups ? groups : *nbGroups;
        origin = (struct origin){origin.device, ++splits};
        for (unsigned int i = 0; i < groups; i++) {
            parts[i] = new_resource(origin, size);
        }
        if (remaining != NULL) {
            *remaining = new_resource(origin, input->sm.smCount - groups * size);
            remaining->type =
                remaining->sm.smCount > 0 ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID;
        }
    }
    *nbGroups = groups;
    return CUDA_SUCCESS;
}

/* Descriptors cannot be destroyed (cuda.h has no function for that). */
SIM_API(cuDevResourceGenerateDesc, SIM_INITIALIZED,
        (CUdevResourceDesc * phDesc, CUdevResource *resources, unsigned int nbResources))
{
    struct descriptor *descriptor;
    unsigned int count = 0;

    if (phDesc == NULL || resources == NULL || nbResources == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned int i = 0; i < nbResources; i++) {
        struct origin first = origin_of(&resources[0]), origin = origin_of(&resources[i]);

        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) {
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        }
        if (origin.device != first.device || origin.split != first.split) {
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        }
        count += resources[i].sm.smCount;
    }
    descriptor = malloc(sizeof(*descriptor));
    if (descriptor == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    descriptor->resource = new_resource(origin_of(&resources[0]), count);
    *phDesc = sim_handle_create(SIM_HANDLE_RESOURCE, descriptor);
    if (*phDesc == NULL) {
        free(descriptor);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static struct green *find(CUgreenCtx handle)
{
    return sim_handle_object(SIM_HANDLE_GREEN, handle);
}

static CUresult create(struct sim_device *device, const struct descriptor *descriptor,
                       CUgreenCtx *ret_handle)
{
    static unsigned long long last_id;
    struct green *green = calloc(1, sizeof(*green));

    if (green == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    green->handle = sim_handle_create(SIM_HANDLE_GREEN, green);
    if (green->handle == NULL) {
        free(green);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    green->id = ++last_id;
    green->device = device;
    green->resource = descriptor->resource;
    *ret_handle = green->handle;
    return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxCreate, SIM_INITIALIZED,
        (CUgreenCtx * phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags))
{
    const struct descriptor *descriptor = sim_handle_object(SIM_HANDLE_RESOURCE, desc);
    struct sim_device *device = sim_device_get(dev);
    CUcontext primary;
    CUresult result;

    if (phCtx == NULL || descriptor == NULL || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL || origin_of(&descriptor->resource).device != dev) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    result = sim_primary_retain(device, &primary);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = create(device, descriptor, phCtx);
    if (result != CUDA_SUCCESS) {
        (void)sim_primary_release(device);
    }
    return result;
}

SIM_API(cuGreenCtxDestroy, SIM_INITIALIZED, (CUgreenCtx hCtx))
{
    struct green *green = find(hCtx);
    struct sim_device *device;

    if (green == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    device = green->device;
    sim_handle_destroy(SIM_HANDLE_GREEN, hCtx);
    free(green);
    return sim_primary_release(device);
}

SIM_API(cuCtxFromGreenCtx, SIM_INITIALIZED, (CUcontext * pContext, CUgreenCtx hCtx))
{
    const struct green *green = find(hCtx);

    if (pContext == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (green == NULL || !sim_ctx_is_live(green->device->primary)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *pContext = green->device->primary;
    return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxGetDevResource, SIM_INITIALIZED,
        (CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type))
{
    const struct green *green = find(hCtx);

    if (resource == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (green == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    *resource = green->resource;
    return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxGetId, SIM_INITIALIZED, (CUgreenCtx greenCtx, unsigned long long *greenCtxId))
{
    const struct green *green = find(greenCtx);

    if (greenCtxId == NULL || green == NULL) {
        return greenCtxId == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    }
    *greenCtxId = green->id;
    return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxStreamCreate, SIM_INITIALIZED,
        (CUstream * phStream, CUgreenCtx greenCtx, unsigned int flags, int priority))
{
    const struct green *green = find(greenCtx);

    if (green == NULL || !sim_ctx_is_live(green->device->primary)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (flags != CU_STREAM_NON_BLOCKING) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_stream_create(green->device->primary, flags, priority, phStream);
}
