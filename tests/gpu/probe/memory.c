#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUmemLocationType host_type = CU_MEM_LOCATION_TYPE_HOST_NUMA;

const char *memory_tier(enum tier tier)
{
    return tier == ON_HOST ? "host" : "device";
}

CUmemAllocationProp memory_properties(enum tier tier)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

    properties.location.type = tier == ON_HOST ? host_type : CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = tier == ON_HOST ? probe.node : probe.device;
    return properties;
}

CUmemAccessDesc memory_access(void)
{
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = probe.device;
    return access;
}

static bool try_host(const char *place)
{
    CUmemAllocationProp properties = memory_properties(ON_HOST);
    CUmemGenericAllocationHandle chunk;
    CUresult result = cuMemCreate(&chunk, 2 * MIB, &properties, 0);

    if (result != CUDA_SUCCESS) {
        probe_note("skipped", "host chunks", "cuMemCreate at %s%d: %s", place, probe.node,
                   probe_error(result));
        probe.node = -1;
        return false;
    }
    MUST(cuMemRelease(chunk));
    return true;
}

/* Asks only for the node that the driver names, or node 0: the row host-nodes tries the others,
 * each in a process that may crash. */
bool memory_find_host(void)
{
    int node = -1;

    cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, probe.device);
    probe.node = node < 0 ? 0 : node;
    return try_host("node ");
}

bool memory_find_host_at(const char *place)
{
    bool anywhere = strcmp(place, "HOST") == 0;

    host_type = anywhere ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_HOST_NUMA;
    probe.node = anywhere ? 0 : atoi(place);
    return try_host(anywhere ? "the location HOST, node " : "node ");
}

CUmemGenericAllocationHandle memory_create(enum tier tier, size_t bytes)
{
    CUmemAllocationProp properties = memory_properties(tier);
    CUmemGenericAllocationHandle chunk;

    MUST(cuMemCreate(&chunk, bytes, &properties, 0));
    return chunk;
}

CUdeviceptr memory_reserve(size_t bytes)
{
    CUdeviceptr address;

    MUST(cuMemAddressReserve(&address, bytes, 2 * MIB, 0, 0));
    return address;
}

void memory_map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle chunk)
{
    MUST(cuMemMap(address, bytes, 0, chunk, 0));
}

void memory_allow(CUdeviceptr address, size_t bytes)
{
    CUmemAccessDesc access = memory_access();

    MUST(cuMemSetAccess(address, bytes, &access, 1));
}

CUdeviceptr memory_new(enum tier tier, size_t bytes)
{
    return memory_new_range(&tier, 1, bytes, 1);
}

void memory_delete(CUdeviceptr address, size_t bytes)
{
    memory_delete_range(address, bytes, 1);
}

CUdeviceptr memory_new_range(const enum tier *tiers, size_t period, size_t bytes, size_t count)
{
    CUdeviceptr address = memory_reserve(bytes * count);

    for (size_t i = 0; i < count; i++) {
        CUmemGenericAllocationHandle chunk = memory_create(tiers[i % period], bytes);

        memory_map(address + i * bytes, bytes, chunk);
        memory_allow(address + i * bytes, bytes);
        MUST(cuMemRelease(chunk));
    }
    return address;
}

void memory_delete_range(CUdeviceptr address, size_t bytes, size_t count)
{
    MUST(cuCtxSynchronize());
    for (size_t i = 0; i < count; i++) {
        MUST(cuMemUnmap(address + i * bytes, bytes));
    }
    MUST(cuMemAddressFree(address, bytes * count));
}

size_t memory_kilobytes(const char *path, const char *field)
{
    FILE *file = fopen(path, "r");
    char line[256];
    unsigned long long value = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            sscanf(line + strlen(field), ": %llu", &value);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return (size_t)value << 10;
}
