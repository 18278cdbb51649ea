#include "device/host_budget.h"

#include <stddef.h>

#include "common/options.h"
#include "device/state.h"
#include "driver/host_place.h"
#include "stats/path.h"

/* Returns the root folder of the machine's files; NULL for a simulated machine without files. */
static const char *root_of_machine(void)
{
    return spw_driver_host_root(spw_process_driver()->simulated != NULL);
}

void spw_device_host_memory(struct spw_migrate_host_memory *ret_memory)
{
    const char *root = root_of_machine();
    struct spw_option_value simulated;
    uint64_t bytes;

    spw_migrate_host_memory_below(root != NULL ? root : "", ret_memory);
    if (root == NULL) {
        simulated = spw_option_get(SPW_OPT_SPILLWAY_SIM_HOST_MEMORY, NULL, 0);
        bytes = spw_option_bytes(&simulated, ret_memory->total);
        *ret_memory = (struct spw_migrate_host_memory){.total = bytes, .available = bytes};
    }
}

static uint64_t gpus_of_machine(void)
{
    const char *root = root_of_machine();
    uint64_t visible = (uint64_t)spw_device_count();
    uint64_t all = root == NULL ? spw_option_get(SPW_OPT_SPILLWAY_SIM_DEVICES, NULL, 0).bytes
                                : (uint64_t)spw_migrate_host_memory_gpus(root);

    return all > visible ? all : visible;
}

uint64_t spw_device_host_share(const struct spw_migrate_host_memory *memory)
{
    uint32_t ranks = spw_stats_local_ranks();

    return spw_migrate_host_memory_share(memory) / (ranks > 1 ? ranks : gpus_of_machine());
}

uint64_t spw_device_host_room(void)
{
    struct spw_migrate_host_memory memory;
    const char *root = root_of_machine();

    if (root == NULL) {
        return UINT64_MAX; /* the simulated driver itself enforces a limit */
    }
    spw_migrate_host_memory_below(root, &memory);
    return spw_migrate_host_memory_room(&memory);
}
