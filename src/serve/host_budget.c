#include "serve/host_budget.h"

#include "common/options.h"
#include "track/process.h"

void spw_serve_host_memory(struct spw_migrate_host_memory *ret_memory)
{
    struct spw_option_value simulated;
    uint64_t bytes;

    spw_migrate_host_memory(ret_memory);
    if (spw_track_driver()->simulated != NULL) {
        simulated = spw_option_get(SPW_OPT_SPILLWAY_SIM_HOST_MEMORY, NULL, 0);
        bytes = spw_option_bytes(&simulated, ret_memory->total);
        *ret_memory = (struct spw_migrate_host_memory){.total = bytes, .available = bytes};
    }
}
