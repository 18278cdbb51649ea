#include "cli/reports/need.h"

#include "common/options.h"
#include "gpu/communicator.h"

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

const char *spw_cli_need_term_name(enum spw_cli_term term)
{
    static const char *const names[SPW_CLI_TERMS] = {
        [SPW_CLI_TERM_PROGRAM] = "program",
        [SPW_CLI_TERM_CONTEXT] = "context",
        [SPW_CLI_TERM_NCCL] = "nccl",
    };

    return names[term];
}

const char *spw_cli_need_basis_name(enum spw_cli_basis basis)
{
    static const char *const names[] = {
        [SPW_CLI_EXACT] = "exact",
        [SPW_CLI_CALIBRATED] = "calibrated",
        [SPW_CLI_GUESS] = "guess",
    };

    return names[basis];
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* With less memory the pool keeps less free. What it needs beyond live memory is at most 2 %, by
 * the smallest devices on which training ran (benchmark `frag-torch`, capacity E). */
static uint64_t packed(const struct spw_cli_sim_device *device, uint64_t live)
{
    uint64_t others = device->program_peak_bytes > device->pool_peak_bytes
                          ? device->program_peak_bytes - device->pool_peak_bytes
                          : 0;

    return others + live / 98 * 100;
}

static struct spw_cli_need_term program_term(const struct spw_cli_sim_device *device)
{
    uint64_t taken = device->overhead_bytes > 0 ? device->nccl_bytes : 0; /* of the live bytes */
    uint64_t live = device->live_peak_bytes > taken ? device->live_peak_bytes - taken : 0;
    uint64_t bytes = device->spilled ? live : device->program_peak_bytes, most = bytes;

    if (device->host_peak_bytes == 0 && device->pooled) {
        most = packed(device, live);
        bytes = smaller(bytes, most);
    }
    return (struct spw_cli_need_term){bytes, most, SPW_CLI_EXACT};
}

/* The driver's own memory, as far as it is simulated, is part of this. */
static struct spw_cli_need_term context_term(const struct spw_cli_sim_device *device,
                                             const struct spw_gpu_profile *profile)
{
    struct spw_gpu_overhead overhead = spw_gpu_profile_overhead(profile);

    return (struct spw_cli_need_term){
        .bytes = larger((uint64_t)overhead.mib << 20, device->own_peak_bytes),
        .most = larger((uint64_t)overhead.most_mib << 20, device->own_peak_bytes),
        .basis = overhead.messages > 0 ? SPW_CLI_CALIBRATED : SPW_CLI_GUESS,
    };
}

static struct spw_cli_need_term nccl_term(const struct spw_cli_sim_device *device,
                                          const struct spw_gpu_profile *profile)
{
    return (struct spw_cli_need_term){
        .bytes = device->nccl_bytes,
        .most = larger(device->nccl_most_bytes, device->nccl_bytes),
        .basis = spw_gpu_channels_are_published(profile) ? SPW_CLI_CALIBRATED : SPW_CLI_GUESS,
    };
}

struct spw_cli_need spw_cli_need_of(const struct spw_cli_sim_device *device,
                                    const struct spw_gpu_profile *profile)
{
    struct spw_cli_need need = {
        .terms = {[SPW_CLI_TERM_PROGRAM] = program_term(device),
                  [SPW_CLI_TERM_CONTEXT] = context_term(device, profile),
                  [SPW_CLI_TERM_NCCL] = nccl_term(device, profile)},
        .spare = device->total_bytes - device->used_peak_bytes,
        .without_spilling = device->spilled,
    };

    if (device->used_peak_bytes > device->total_bytes) {
        need.spare = 0;
    }
    for (int i = 0; i < SPW_CLI_TERMS; i++) {
        need.in_all += need.terms[i].bytes;
        need.in_all_most += need.terms[i].most;
    }
    need.besides = need.in_all - need.terms[SPW_CLI_TERM_PROGRAM].bytes;
    need.besides_most = need.in_all_most - need.terms[SPW_CLI_TERM_PROGRAM].most;
    return need;
}

bool spw_cli_need_is_of_card(const struct spw_cli_sim_device *device)
{
    return device->overhead_bytes == 0 &&
           device->total_bytes == (uint64_t)spw_cli_need_profile()->memory_mib << 20;
}

struct spw_cli_need spw_cli_need_of_sharers(const struct spw_cli_sim_result *result, int index,
                                            const struct spw_gpu_profile *profile)
{
    uint64_t bytes = result->shared_peaks[index];
    struct spw_cli_need sum = {.terms = {{bytes, bytes, SPW_CLI_EXACT}}};

    for (size_t i = 0; i < result->count; i++) {
        for (int k = 0; k < result->processes[i].device_count; k++) {
            const struct spw_cli_sim_device *device = &result->processes[i].devices[k];
            struct spw_cli_need need;

            if (device->index == index && device->shared_peak_bytes > 0) {
                need = spw_cli_need_of(device, profile);
                sum.besides += need.besides;
                sum.besides_most += need.besides_most;
                sum.without_spilling |= need.without_spilling;
            }
        }
    }
    sum.in_all = bytes + sum.besides;
    sum.in_all_most = bytes + sum.besides_most;
    return sum;
}

bool spw_cli_need_fits_unplaced(const struct spw_cli_sim_device *device)
{
    struct spw_cli_need need = spw_cli_need_of(device, spw_cli_need_profile());

    return packed(device, device->live_peak_bytes) + need.besides_most <= device->total_bytes;
}

/* For a device that several processes shared, all of them together. */
static bool sharers_fit(const struct spw_cli_sim_result *result,
                        const struct spw_cli_sim_device *device)
{
    return !spw_cli_need_is_of_card(device) ||
           spw_cli_sim_result_sharers(result, device->index) < 2 ||
           spw_cli_need_of_sharers(result, device->index, spw_cli_need_profile()).in_all_most <=
               device->total_bytes;
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
            const struct spw_cli_sim_device *device = &result->processes[i].devices[k];

            if (!fits_card(device) || !sharers_fit(result, device)) {
                return false;
            }
        }
    }
    return true;
}
