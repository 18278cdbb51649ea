#include "sim/libs/cudnn/content.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/libs/common/driver.h"

static void put(struct sim_cudnn_content *content, const void *from, size_t bytes)
{
    content->complete = content->complete && bytes <= SIM_CUDNN_MOST - content->count;
    if (content->complete && bytes > 0) {
        memcpy(content->bytes + content->count, from, bytes);
        content->count += bytes;
    }
}

/* The library computes the second one itself, and has no handle without a device. */
static bool is_asked(const struct sim_cudnn_attribute *attribute)
{
    return attribute->type != CUDNN_TYPE_HANDLE && attribute->type != CUDNN_TYPE_VOID_PTR &&
           attribute->name != CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT;
}

static void put_descriptor(struct sim_cudnn_content *content,
                           const struct sim_cudnn_descriptor *descriptor)
{
    struct sim_cudnn_node node = {.kind = (int32_t)descriptor->kind};

    for (const struct sim_cudnn_attribute *a = descriptor->attributes; a != NULL; a = a->next) {
        node.count += is_asked(a);
    }
    put(content, &node, sizeof(node));
    for (const struct sim_cudnn_attribute *a = descriptor->attributes; a != NULL; a = a->next) {
        bool nested = a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
        size_t bytes = nested ? 0 : (size_t)a->count * sim_cudnn_descriptor_element_bytes(a->type);
        struct sim_cudnn_leaf leaf = {(int32_t)a->name, (int32_t)a->type, (int32_t)a->count,
                                      (int32_t)bytes};

        if (!is_asked(a)) {
            continue;
        }
        put(content, &leaf, sizeof(leaf));
        put(content, a->data, bytes);
        for (int64_t i = 0; i < a->count && nested && content->complete; i++) {
            const struct sim_cudnn_descriptor *child = sim_cudnn_descriptor_child(a, i);

            if (child == NULL) {
                content->complete = false;
                return;
            }
            put_descriptor(content, child);
        }
    }
}

/* An attribute of the current device; 0 if it cannot be read. */
static int attribute(CUdevice_attribute name)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUdevice device;
    int value = 0;

    if (sim_shim_context() == CUDA_SUCCESS && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        (void)driver->cuDeviceGetAttribute(&value, name, device);
    }
    return value;
}

static size_t total_bytes(void)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUdevice device;
    size_t bytes = 0;

    if (driver->cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        (void)driver->cuDeviceTotalMem(&bytes, device);
    }
    return bytes;
}

static void put_format(struct sim_cudnn_content *content, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_format(struct sim_cudnn_content *content, const char *format, ...)
{
    char text[128];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    put(content, text, strlen(text));
}

/* Writes the members that cuDNN wants to know of a device. */
static void put_properties(struct sim_cudnn_content *content)
{
    static const struct {
        const char *member;
        CUdevice_attribute attribute;
    } numbers[] = {
#define SIM_CUDNN_PROPERTY(member, name) {#member, CU_DEVICE_ATTRIBUTE_##name},
#include "sim/libs/cudnn/properties.def"
    };

    put_format(content, "{\"deviceVer\":%d",
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 100 +
                   attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) * 10);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        put_format(content, ",\"%s\":%d", numbers[i].member, attribute(numbers[i].attribute));
    }
    put_format(content, ",\"maxBlockSize\":[%d,%d,%d]",
               attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
    put_format(content, ",\"maxGridSize\":[%d,%d,%d]",
               attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z));
    put_format(content,
               ",\"totalGlobalMem\":%zu,\"driverVer\":%d,\"deviceName\":\"\",\"cudaDeviceId\":0,"
               "\"pciDeviceId\":0,\"isTccDriver\":0}",
               total_bytes(), CUDA_VERSION);
    put(content, "", 1);
}

static void put_text(struct sim_cudnn_content *content, const char *text)
{
    put(content, text, strlen(text) + 1);
}

bool sim_cudnn_content_make(const char *library, const struct sim_cudnn_descriptor *heuristics,
                            struct sim_cudnn_content *ret_content)
{
    const char *tf32 = getenv(SIM_CUDNN_TF32);

    *ret_content = (struct sim_cudnn_content){.bytes = malloc(SIM_CUDNN_MOST)};
    if (ret_content->bytes == NULL) {
        return false;
    }
    ret_content->complete = true;
    put_text(ret_content, library);
    put_text(ret_content, tf32 != NULL ? tf32 : "");
    put_properties(ret_content);
    put_descriptor(ret_content, heuristics);
    return ret_content->complete;
}
