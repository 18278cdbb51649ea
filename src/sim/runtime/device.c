/* Devices: their number, selection, properties, and the settings of their contexts. */
#include <stddef.h>
#include <string.h>

#include "sim/runtime/entry.h"

SIMRT_API(cudaGetDeviceCount, SIMRT_NOTHING, (int *ret_count))
{
    if (ret_count == NULL) {
        return cudaErrorInvalidValue;
    }
    /* The count is written even without a driver: some callers read it before the error. */
    cudaError_t error = simrt_init();
    *ret_count = simrt_device_count();
    return error;
}

SIMRT_API(cudaGetDevice, SIMRT_DRIVER, (int *ret_ordinal))
{
    if (ret_ordinal == NULL) {
        return cudaErrorInvalidValue;
    }
    return simrt_device_current(ret_ordinal);
}

SIMRT_API(cudaSetDevice, SIMRT_DRIVER, (int ordinal))
{
    return simrt_device_choose(ordinal);
}

SIMRT_API(cudaSetValidDevices, SIMRT_DRIVER, (int *ordinals, int count))
{
    CUdevice device;

    if (count > 0 && ordinals == NULL) {
        return cudaErrorInvalidValue;
    }
    for (int i = 0; i < count; i++) {
        if (simrt_device_handle(ordinals[i], &device) != cudaSuccess) {
            return cudaErrorInvalidDevice;
        }
    }
    simrt_device_set_default(count > 0 ? ordinals[0] : 0);
    return cudaSuccess;
}

SIMRT_API(cudaInitDevice, SIMRT_DRIVER,
          (int ordinal, unsigned int device_flags, unsigned int flags))
{
    CUcontext context;
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    if ((flags & ~(unsigned int)cudaInitDeviceFlagsAreValid) != 0) {
        return cudaErrorInvalidValue;
    }
    if (flags & cudaInitDeviceFlagsAreValid) {
        CUresult result = simrt_driver.cuDevicePrimaryCtxSetFlags(device, device_flags);
        if (result != CUDA_SUCCESS) {
            return simrt_error(result);
        }
    }
    return simrt_context_primary(ordinal, &context);
}

SIMRT_API(cudaSetDeviceFlags, SIMRT_DRIVER, (unsigned int flags))
{
    int ordinal;
    CUdevice device;
    cudaError_t error = simrt_device_current(&ordinal);

    if (error == cudaSuccess) {
        error = simrt_device_handle(ordinal, &device);
    }
    if (error != cudaSuccess) {
        return error;
    }
    if ((flags & ~(unsigned int)cudaDeviceMask) != 0) {
        return cudaErrorInvalidValue;
    }
    /* The driver has no such flag, because it always maps host memory. */
    flags &= ~(unsigned int)cudaDeviceMapHost;
    return simrt_error(simrt_driver.cuDevicePrimaryCtxSetFlags(device, flags));
}

SIMRT_API(cudaGetDeviceFlags, SIMRT_DRIVER, (unsigned int *ret_flags))
{
    CUcontext context = NULL;
    CUdevice device;
    int ordinal;
    int active;
    unsigned int flags;
    CUresult result;

    if (ret_flags == NULL) {
        return cudaErrorInvalidValue;
    }
    if (simrt_driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != NULL) {
        result = simrt_driver.cuCtxGetFlags(&flags);
    } else {
        cudaError_t error = simrt_device_current(&ordinal);
        if (error == cudaSuccess) {
            error = simrt_device_handle(ordinal, &device);
        }
        if (error != cudaSuccess) {
            return error;
        }
        result = simrt_driver.cuDevicePrimaryCtxGetState(device, &flags, &active);
    }
    if (result == CUDA_SUCCESS) {
        *ret_flags = flags | cudaDeviceMapHost;
    }
    return simrt_error(result);
}

SIMRT_API(cudaDeviceReset, SIMRT_DRIVER, (void))
{
    return simrt_context_reset();
}

SIMRT_API(cudaDeviceGetAttribute, SIMRT_DRIVER,
          (int *ret_value, enum cudaDeviceAttr attribute, int ordinal))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    CUdevice_attribute driver_attribute = (CUdevice_attribute)attribute;
    return simrt_error(simrt_driver.cuDeviceGetAttribute(ret_value, driver_attribute, device));
}

/* The value of an attribute. If the driver does not know the attribute, the value is 0, as for a
 * device without the feature. */
static int attribute_or_zero(CUdevice device, CUdevice_attribute attribute)
{
    int value = 0;
    CUresult result = simrt_driver.cuDeviceGetAttribute(&value, attribute, device);

    return result == CUDA_SUCCESS ? value : 0;
}

static CUresult get_properties(CUdevice device, struct cudaDeviceProp *ret_properties)
{
    struct cudaDeviceProp *p = ret_properties;
    CUuuid uuid;

    memset(p, 0, sizeof(*p));
    CUresult result = simrt_driver.cuDeviceGetName(p->name, sizeof(p->name), device);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = simrt_driver.cuDeviceTotalMem(&p->totalGlobalMem, device);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = simrt_driver.cuDeviceGetUuid(&uuid, device);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    memcpy(&p->uuid, &uuid, sizeof(p->uuid));

#define SIMRT_PROPERTY(field, attribute)                                                           \
    p->field = attribute_or_zero(device, CU_DEVICE_ATTRIBUTE_##attribute);
#include "sim/runtime/properties.def"
#undef SIMRT_PROPERTY
    return CUDA_SUCCESS;
}

SIMRT_API(cudaGetDeviceProperties, SIMRT_DRIVER,
          (struct cudaDeviceProp * ret_properties, int ordinal))
{
    struct cudaDeviceProp properties;
    CUdevice device;

    if (ret_properties == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = simrt_device_handle(ordinal, &device);
    if (error != cudaSuccess) {
        return error;
    }
    CUresult result = get_properties(device, &properties);
    if (result == CUDA_SUCCESS) {
        *ret_properties = properties;
    }
    return simrt_error(result);
}

SIMRT_API(cudaChooseDevice, SIMRT_DRIVER, (int *ret_ordinal, const struct cudaDeviceProp *wanted))
{
    if (ret_ordinal == NULL || wanted == NULL) {
        return cudaErrorInvalidValue;
    }
    int best = 0;
    for (int i = simrt_device_count() - 1; i >= 0; i--) {
        struct cudaDeviceProp p;
        CUdevice device;
        if (simrt_device_handle(i, &device) != cudaSuccess ||
            get_properties(device, &p) != CUDA_SUCCESS) {
            continue;
        }
        bool new_enough =
            p.major > wanted->major || (p.major == wanted->major && p.minor >= wanted->minor);
        if (new_enough && p.totalGlobalMem >= wanted->totalGlobalMem) {
            best = i;
        }
    }
    *ret_ordinal = best;
    return cudaSuccess;
}

SIMRT_API(cudaDeviceGetPCIBusId, SIMRT_DRIVER, (char *ret_text, int length, int ordinal))
{
    CUdevice device;
    cudaError_t error = simrt_device_handle(ordinal, &device);

    if (error != cudaSuccess) {
        return error;
    }
    return simrt_error(simrt_driver.cuDeviceGetPCIBusId(ret_text, length, device));
}

SIMRT_API(cudaDeviceGetByPCIBusId, SIMRT_DRIVER, (int *ret_ordinal, const char *text))
{
    CUdevice device;
    CUdevice candidate;

    if (ret_ordinal == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = simrt_driver.cuDeviceGetByPCIBusId(&device, text);
    for (int i = 0; result == CUDA_SUCCESS && i < simrt_device_count(); i++) {
        if (simrt_device_handle(i, &candidate) == cudaSuccess && candidate == device) {
            *ret_ordinal = i;
            return cudaSuccess;
        }
    }
    return result != CUDA_SUCCESS ? simrt_error(result) : cudaErrorInvalidDevice;
}
