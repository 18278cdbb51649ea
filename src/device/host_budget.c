#include "device/host_budget.h"

#include <stddef.h>

#include "common/minmax.h"
#include "device/state.h"
#include "driver/host_memory.h"
#include "driver/host_place.h"
#include "driver/host_rights.h"
#include "stats/path.h"

/* The largest piece of host memory that is requested at once (the default of SPILLWAY_CHUNK). */
static const uint64_t most_requested = UINT64_C(64) << 20;

static bool is_simulated(void)
{
    return spw_process_driver()->simulated != NULL;
}

void spw_device_host_memory(struct spw_host_memory *ret_memory)
{
    spw_driver_host_memory(is_simulated(), ret_memory);
}

uint64_t spw_device_host_share(const struct spw_host_memory *memory)
{
    uint64_t visible = (uint64_t)spw_device_count();
    uint32_t ranks = spw_stats_local_ranks();

    return spw_driver_host_memory_share(memory) /
           (ranks > 1 ? ranks : spw_max(visible, spw_driver_host_gpus(is_simulated())));
}

struct spw_host_limit spw_device_host_room(void)
{
    const char *root = spw_driver_host_root(is_simulated());
    struct spw_host_memory memory;

    if (root == NULL) {
        /* The simulated driver itself enforces a limit. */
        return (struct spw_host_limit){.bytes = UINT64_MAX, .bound = SPW_HOST_BOUND_MACHINE};
    }
    spw_driver_host_memory_below(root, &memory);
    return spw_driver_host_memory_room(&memory);
}

enum spw_host_bound spw_device_host_wall(uint64_t wall_bytes)
{
    struct spw_host_rights rights;

    spw_driver_host_rights_below(spw_driver_host_root(is_simulated()), &rights);
    return spw_driver_host_rights_wall(&rights, wall_bytes, most_requested);
}
