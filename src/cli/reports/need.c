#include "cli/reports/need.h"

#include "common/options.h"

const struct spw_gpu_profile *spw_cli_need_profile(void)
{
    const struct spw_gpu_profile *profile =
        spw_gpu_profile_find(spw_option_get(SPW_OPT_SPILLWAY_SIM_PROFILE, NULL, 0).text);

    /* For an unusable value the simulated driver uses the default, too. */
    return profile != NULL
               ? profile
               : spw_gpu_profile_find(spw_option_row(SPW_OPT_SPILLWAY_SIM_PROFILE)->fallback);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Without the driver's own memory: that is part of what a card holds besides. */
static uint64_t program_bytes(const struct spw_cli_sim_device *device)
{
    uint64_t own = larger(device->own_peak_bytes, device->overhead_bytes);

    if (device->host_peak_bytes > 0) {
        return device->live_peak_bytes;
    }
    return device->used_peak_bytes > own ? device->used_peak_bytes - own : 0;
}

struct spw_cli_need spw_cli_need_of(const struct spw_cli_sim_device *device,
                                    const struct spw_gpu_profile *profile)
{
    struct spw_gpu_overhead overhead = spw_gpu_profile_overhead(profile);
    struct spw_cli_need need = {
        .program = program_bytes(device),
        .besides = larger((uint64_t)overhead.mib << 20, device->own_peak_bytes),
        .besides_most = larger((uint64_t)overhead.most_mib << 20, device->own_peak_bytes),
        .spare = device->total_bytes - device->used_peak_bytes,
        .without_spilling = device->host_peak_bytes > 0,
    };

    if (device->used_peak_bytes > device->total_bytes) {
        need.spare = 0;
    }
    need.in_all = need.program + need.besides;
    need.in_all_most = need.program + need.besides_most;
    return need;
}

bool spw_cli_need_is_of_card(const struct spw_cli_sim_device *device)
{
    return device->overhead_bytes == 0 &&
           device->total_bytes == (uint64_t)spw_cli_need_profile()->memory_mib << 20;
}

static bool fits_card(const struct spw_cli_sim_device *device)
{
    struct spw_cli_need need = spw_cli_need_of(device, spw_cli_need_profile());

    return !device->used || !spw_cli_need_is_of_card(device) ||
           need.in_all_most <= device->total_bytes;
}

bool spw_cli_need_fits(const struct spw_cli_sim_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        for (int k = 0; k < result->processes[i].device_count; k++) {
            if (!fits_card(&result->processes[i].devices[k])) {
                return false;
            }
        }
    }
    return true;
}
