#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

void section_alive(const char *argument)
{
    const size_t words = MIB / 4;
    CUdeviceptr address;

    MUST(cuMemAlloc(&address, MIB));
    kernels_fill(address, words, 7, NULL);
    probe_verdict(kernels_differ(address, words, 7) == 0, "a kernel fills memory", "1 MiB");
    MUST(cuMemFree(address));
}

static const struct {
    CUdevice_attribute attribute;
    const char *name;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "compute capability, major"},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "compute capability, minor"},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory management"},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, "host NUMA id"},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "chunks at NUMA nodes"},
    {(CUdevice_attribute)145, "chunks at the host (CUDA 13)"},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, "GPUDirect RDMA"},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, "GPUDirect RDMA of chunks"},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "file descriptor handles"},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, "memory pools"},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, "concurrent managed access"},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, "pageable memory access"},
    {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, "multicast"},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, "copy engines"},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, "integrated"},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, "page tables of the host"},
    {CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, "memory is a NUMA node"},
};

static void show_granularity(enum tier tier, CUmemAllocationGranularity_flags which)
{
    CUmemAllocationProp properties = memory_properties(tier);
    char subject[64];
    size_t bytes = 0;
    CUresult result = cuMemGetAllocationGranularity(&bytes, &properties, which);

    snprintf(subject, sizeof(subject), "granularity, %s, %s", memory_tier(tier),
             which == CU_MEM_ALLOC_GRANULARITY_MINIMUM ? "minimum" : "recommended");
    probe_note("figure", subject, "%zu%s%s", bytes, result ? " " : "",
               result ? probe_error(result) : "");
}

static void show_reservation(size_t total)
{
    for (size_t times = 1; times <= 64; times *= 4) {
        size_t bytes = total * times / (2 * MIB) * (2 * MIB);
        CUdeviceptr address;
        char subject[64];
        CUresult result = cuMemAddressReserve(&address, bytes, 2 * MIB, 0, 0);

        snprintf(subject, sizeof(subject), "reserve %zu x the device's memory", times);
        probe_note("figure", subject, "%s", probe_error(result));
        if (result == CUDA_SUCCESS) {
            MUST(cuMemAddressFree(address, bytes));
        }
    }
}

void section_facts(const char *argument)
{
    char name[256] = "";
    size_t available, total;
    int version, value;

    MUST(cuDeviceGetName(name, sizeof(name), probe.device));
    MUST(cuDriverGetVersion(&version));
    MUST(cuMemGetInfo(&available, &total));
    probe_note("figure", "device", "%s", name);
    probe_note("figure", "driver interface", "%d", version);
    probe_note("figure", "memory", "%zu, free %zu", total, available);
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        CUresult result = cuDeviceGetAttribute(&value, attributes[i].attribute, probe.device);

        if (result == CUDA_SUCCESS) {
            probe_note("figure", attributes[i].name, "%d", value);
        } else {
            probe_note("figure", attributes[i].name, "%s", probe_error(result));
        }
    }
    show_granularity(ON_DEVICE, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    show_granularity(ON_DEVICE, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (memory_find_host()) {
        show_granularity(ON_HOST, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        show_granularity(ON_HOST, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    }
    show_reservation(total);
}

/* Creates, maps, fills and checks one chunk at a location. */
static void try_location(CUmemLocationType type, int id, const char *subject)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle chunk;
    const size_t words = 2 * MIB / 4;

    properties.location.type = type;
    properties.location.id = id;
    CUresult result = cuMemCreate(&chunk, 2 * MIB, &properties, 0);
    if (result != CUDA_SUCCESS) {
        probe_note("figure", subject, "cuMemCreate: %s", probe_error(result));
        return;
    }
    CUdeviceptr address = memory_reserve(2 * MIB);
    memory_map(address, 2 * MIB, chunk);
    memory_allow(address, 2 * MIB);
    kernels_fill(address, words, 5, NULL);
    probe_verdict(kernels_differ(address, words, 5) == 0, subject, "created, filled, checked");
    memory_delete(address, 2 * MIB);
    MUST(cuMemRelease(chunk));
}

void section_host_node(const char *argument)
{
    char subject[64];

    if (argument != NULL && strcmp(argument, "host") == 0) {
        try_location(CU_MEM_LOCATION_TYPE_HOST, 0, "location HOST");
        return;
    }
    int node = argument == NULL ? 0 : atoi(argument);
    snprintf(subject, sizeof(subject), "location HOST_NUMA %d", node);
    try_location(CU_MEM_LOCATION_TYPE_HOST_NUMA, node, subject);
}
