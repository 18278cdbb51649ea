#include "driver/one_memory.h"

#include <unistd.h>

bool spw_driver_is_one_memory(const struct spw_one_memory_facts *facts)
{
    uint64_t tenth = facts->host_bytes / 10;

    if (facts->integrated) {
        return true;
    }
    return facts->host_page_tables && !facts->own_node && facts->host_bytes > 0 &&
           facts->device_bytes >= facts->host_bytes - tenth &&
           facts->device_bytes <= facts->host_bytes + tenth;
}

uint64_t spw_driver_one_memory_of(__typeof__(cuDeviceGetAttribute) *attribute,
                                  __typeof__(cuDeviceTotalMem_v2) *total_of, CUdevice device)
{
    int integrated = 0, page_tables = 0, node = 0;
    size_t total = 0;
    struct spw_one_memory_facts facts;

    (void)attribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, device);
    (void)attribute(&page_tables, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
                    device);
    (void)attribute(&node, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, device);
    if (total_of(&total, device) != CUDA_SUCCESS) {
        return 0;
    }
    facts = (struct spw_one_memory_facts){
        .integrated = integrated != 0,
        .host_page_tables = page_tables != 0,
        .own_node = node == CU_DEVICE_NUMA_CONFIG_NUMA_NODE,
        .device_bytes = total,
        .host_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
    };
    return spw_driver_is_one_memory(&facts) ? total : 0;
}
