#include "memory.h"

#include <stdio.h>

const char *memory_tier(enum tier tier)
{
    return tier == ON_HOST ? "host" : "device";
}

CUmemAllocationProp memory_properties(enum tier tier)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

    properties.location.type =
        tier == ON_HOST ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
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

/* Asks only for the node that the driver names, or node 0: the row host-nodes tries the others,
 * each in a process that may crash. */
bool memory_find_host(void)
{
    CUmemGenericAllocationHandle chunk;
    CUmemAllocationProp properties;
    int node = -1;

    cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, probe.device);
    probe.node = node < 0 ? 0 : node;
    properties = memory_properties(ON_HOST);
    CUresult result = cuMemCreate(&chunk, 2 * MIB, &properties, 0);
    if (result != CUDA_SUCCESS) {
        probe_note("skipped", "host chunks", "cuMemCreate at node %d: %s", probe.node,
                   probe_error(result));
        probe.node = -1;
        return false;
    }
    MUST(cuMemRelease(chunk));
    return true;
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
