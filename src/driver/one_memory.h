/* Finds out whether a device has no memory of its own, but uses the host's (GB10, Jetson). No
 * lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_api.h"

struct spw_one_memory_facts {
    bool integrated;       /* CU_DEVICE_ATTRIBUTE_INTEGRATED */
    bool host_page_tables; /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES */
    bool own_node;         /* CU_DEVICE_ATTRIBUTE_NUMA_CONFIG: its memory is a NUMA node */
    uint64_t device_bytes; /* total memory that the driver reports for the device */
    uint64_t host_bytes;   /* MemTotal of the machine; 0: unknown */
};

/* Returns true if device and host have one memory. GB10, Orin and Thor say that they are
 * integrated. A device that uses the page tables of the host need not be such a device: GH200,
 * GB200 and GB300 do so too. Their memory is a NUMA node or, in the mode in which it is not (CDMM),
 * of another size than the host's. */
bool spw_driver_is_one_memory(const struct spw_one_memory_facts *facts);

/* Asks the driver for the facts, and the system for its memory. Returns the total memory of such a
 * device; 0 if it has memory of its own, or if the driver does not answer. */
uint64_t spw_driver_one_memory_of(__typeof__(cuDeviceGetAttribute) *attribute,
                                  __typeof__(cuDeviceTotalMem_v2) *total_of, CUdevice device);
