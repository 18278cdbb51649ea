#include "device/one_memory.h"

#include "common/reserve.h"
#include "common/size.h"
#include "device/host_budget.h"
#include "driver/one_memory.h"
#include "system/lock.h"
#include "system/log.h"

static int attribute(const struct spw_device *device, CUdevice_attribute attribute)
{
    struct spw_driver *driver = spw_process_driver();
    int value = 0;

    return SPW_DRIVER_CALL(driver, device->ordinal, cuDeviceGetAttribute, &value, attribute,
                           device->handle) == CUDA_SUCCESS
               ? value
               : 0;
}

/* Reads the memory of the machine. A simulated machine knows the memory of its processes. */
static void read_memory(const struct spw_device *device, struct spw_host_memory *ret_memory)
{
    const struct spw_driver *driver = spw_process_driver();
    unsigned long long available = 0, total = 0;

    spw_device_host_memory(ret_memory);
    if (driver->simulated_one_memory != NULL) {
        total = driver->simulated_one_memory(device->ordinal, &available);
    }
    if (total > 0) {
        ret_memory->total = total;
        ret_memory->available = available;
    }
}

static void tell(const struct spw_device *device)
{
    char total[SPW_SIZE_TEXT], kept[SPW_SIZE_TEXT];

    spw_log(SPW_LOG_INFO,
            "device %d has no memory of its own: it shares the %s of the machine with the host. %s "
            "stay free, and nothing spills",
            device->ordinal, spw_size_text(device->one_memory.total_bytes, total),
            spw_size_text(device->one_memory.reserve_bytes, kept));
}

/* Fills the members of a device that has no memory of its own. */
static void find(struct spw_device *device)
{
    struct spw_driver *driver = spw_process_driver();
    struct spw_one_memory *one = &device->one_memory;
    struct spw_host_memory memory;
    struct spw_one_memory_facts facts = {
        .integrated = attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0,
        .host_page_tables =
            attribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) !=
            0,
    };
    size_t total = 0;

    if (!facts.integrated && !facts.host_page_tables) {
        return;
    }
    read_memory(device, &memory);
    (void)SPW_DRIVER_CALL(driver, device->ordinal, cuDeviceTotalMem_v2, &total, device->handle);
    facts.device_bytes = total;
    facts.host_bytes = memory.total;
    facts.own_node =
        attribute(device, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG) == CU_DEVICE_NUMA_CONFIG_NUMA_NODE;
    one->is_one = spw_driver_is_one_memory(&facts);
    if (one->is_one) {
        one->total_bytes = memory.total > 0 ? spw_min(memory.total, total) : total;
        one->reserve_bytes = spw_reserve_of(one->total_bytes);
        spw_counter_set(&device->counters->one_memory_bytes, one->total_bytes);
        tell(device);
    }
}

void spw_device_one_memory_find(struct spw_device *device)
{
    if (!atomic_load(&device->one_memory.known)) {
        find(device);
        atomic_store_explicit(&device->one_memory.known, true, memory_order_release);
    }
}

bool spw_device_has_one_memory(struct spw_device *device)
{
    if (!atomic_load_explicit(&device->one_memory.known, memory_order_acquire)) {
        spw_lock(&spw_locks.process);
        spw_device_one_memory_find(device);
        spw_unlock(&spw_locks.process);
    }
    return device->one_memory.is_one;
}

/* Memory of this process that the control groups may not count, because the driver allocated it. */
static uint64_t held_by_driver(const struct spw_device *device)
{
    const struct spw_counters *counters = device->counters;

    return spw_counter_get(&counters->committed_bytes) + spw_counter_get(&counters->passed_bytes) -
           spw_counter_get(&counters->charged_bytes) + spw_counter_get(&counters->pinned_bytes);
}

uint64_t spw_device_one_memory_room(const struct spw_device *device)
{
    struct spw_host_memory memory;

    if (!atomic_load_explicit(&device->one_memory.known, memory_order_acquire) ||
        !device->one_memory.is_one) {
        return UINT64_MAX;
    }
    read_memory(device, &memory);
    return spw_driver_host_memory_one(&memory, held_by_driver(device),
                                      device->one_memory.reserve_bytes);
}
