/* cuDevice*GraphMem*: the memory of the graphs of a device. */
#include "sim/driver/api/entry.h"
#include "sim/driver/core/device.h"
#include "sim/driver/graph/graph_memory.h"

static cuuint64_t *attribute_of(CUdevice device, CUgraphMem_attribute attr)
{
    struct sim_graph_usage *usage = sim_graph_usage_of(device);

    switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        return &usage->used;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        return &usage->used_high;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        return &usage->reserved;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        return &usage->reserved_high;
    default:
        return NULL;
    }
}

SIM_API(cuDeviceGetGraphMemAttribute, SIM_INITIALIZED,
        (CUdevice device, CUgraphMem_attribute attr, void *value))
{
    cuuint64_t *field;

    if (sim_device_get(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    field = attribute_of(device, attr);
    if (field == NULL || value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(cuuint64_t *)value = *field;
    return CUDA_SUCCESS;
}

/* Only the high watermarks may be set, and only to zero. This resets them to the current values. */
SIM_API(cuDeviceSetGraphMemAttribute, SIM_INITIALIZED,
        (CUdevice device, CUgraphMem_attribute attr, void *value))
{
    struct sim_graph_usage *usage;

    if (sim_device_get(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (value == NULL || *(cuuint64_t *)value != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    usage = sim_graph_usage_of(device);
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
        usage->used_high = usage->used;
    } else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
        usage->reserved_high = usage->reserved;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* There is nothing to trim: destroyed graphs keep no memory. */
SIM_API(cuDeviceGraphMemTrim, SIM_INITIALIZED, (CUdevice device))
{
    return sim_device_get(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
