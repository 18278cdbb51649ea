#include "sim/driver/core/sim_options.h"

#include <pthread.h>
#include <stdio.h>

#include "common/bounds.h"
#include "gpu/profile.h"
#include "sim/driver/core/say.h"

static struct sim_options options;
static pthread_once_t options_once = PTHREAD_ONCE_INIT;

/* The default that common/options.def has for an option. */
static struct spw_option_value fallback_of(enum spw_option option)
{
    const char *text = spw_option_row(option)->fallback;
    struct spw_option_value value = {0};

    if (text[0] != '\0') {
        (void)spw_option_parse(option, text, &value, NULL, 0);
    }
    return value;
}

/* Reports a value that the option's type allows but the simulator does not; returns the default. */
static struct spw_option_value refuse(enum spw_option option, const char *expected)
{
    const char *name = spw_option_row(option)->name;

    sim_say("%s=%.128s: expected %s; using the default", name, spw_option_environment(name),
            expected);
    return fallback_of(option);
}

static struct spw_option_value get(enum spw_option option)
{
    char complaint[SPW_COMPLAINT_TEXT];
    struct spw_option_value value = spw_option_get(option, complaint, sizeof(complaint));

    if (complaint[0] != '\0') {
        sim_say("%s", complaint);
    }
    return value;
}

static unsigned int get_count(enum spw_option option, unsigned int most)
{
    struct spw_option_value value = get(option);
    char expected[64];

    if (value.bytes < 1 || value.bytes > most) {
        snprintf(expected, sizeof(expected), "a whole number from 1 to %u", most);
        value = refuse(option, expected);
    }
    return (unsigned int)value.bytes;
}

static const char *get_profile(void)
{
    enum spw_option option = SPW_OPT_SPILLWAY_SIM_PROFILE;
    const char *text = get(option).text;
    char expected[256];

    if (spw_gpu_profile_find(text) != NULL) {
        return text;
    }
    spw_gpu_profile_expected(text, expected, sizeof(expected));
    return refuse(option, expected).text;
}

static struct spw_option_value get_memory(void)
{
    enum spw_option option = SPW_OPT_SPILLWAY_SIM_MEMORY;
    struct spw_option_value value = get(option);

    return value.set && value.bytes == 0 && value.permille == 0 ? refuse(option, "more than 0")
                                                                : value;
}

static uint64_t get_bytes(enum spw_option option)
{
    struct spw_option_value value = get(option);

    return value.percent ? refuse(option, "a size in bytes, such as 8GiB").bytes : value.bytes;
}

static void read_environment(void)
{
    options = (struct sim_options){
        .profile = get_profile(),
        .memory = get_memory(),
        .overhead = get(SPW_OPT_SPILLWAY_SIM_OVERHEAD).on,
        .devices = get_count(SPW_OPT_SPILLWAY_SIM_DEVICES, SPW_DEVICES_MAX),
        .world = (unsigned int)get(SPW_OPT_SPILLWAY_SIM_WORLD).bytes,
        .host_memory = get(SPW_OPT_SPILLWAY_SIM_HOST_MEMORY),
        .host_nodes = get_count(SPW_OPT_SPILLWAY_SIM_HOST_NODES, SPW_HOST_NODES_MAX),
        .spin = get(SPW_OPT_SPILLWAY_SIM_SPIN).bytes,
        .link = get(SPW_OPT_SPILLWAY_SIM_LINK).bytes,
        .link_out = get(SPW_OPT_SPILLWAY_SIM_LINK_OUT).bytes,
        .unknown = (enum spw_unknown)get(SPW_OPT_SPILLWAY_SIM_UNKNOWN).word,
        .seed = get(SPW_OPT_SPILLWAY_SIM_SEED).bytes,
        .time = get(SPW_OPT_SPILLWAY_SIM_TIME).on,
        .costs = (enum spw_costs)get(SPW_OPT_SPILLWAY_SIM_COSTS).word,
        .rates = (enum spw_rates)get(SPW_OPT_SPILLWAY_SIM_RATES).word,
        .log_path = get(SPW_OPT_SPILLWAY_SIM_LOG).text,
        .fail = get(SPW_OPT_SPILLWAY_SIM_FAIL).text,
        .unmap = (enum spw_per)get(SPW_OPT_SPILLWAY_SIM_UNMAP).word,
        .set_access = (enum spw_per)get(SPW_OPT_SPILLWAY_SIM_SETACCESS).word,
        .unmap_waits = get(SPW_OPT_SPILLWAY_SIM_UNMAP_WAITS).on,
        .free_syncs = get(SPW_OPT_SPILLWAY_SIM_FREE_SYNC).on,
        .handles = get(SPW_OPT_SPILLWAY_SIM_HANDLES).word,
        .vmm_unsafe = get(SPW_OPT_SPILLWAY_SIM_CAPTURE_VMM).word == SPW_SAFETY_UNSAFE,
        .crossing = (enum spw_crossing)get(SPW_OPT_SPILLWAY_SIM_CROSSING).word,
        .reach = (enum spw_reach)get(SPW_OPT_SPILLWAY_SIM_REACH).word,
        .regrant_unsafe = get(SPW_OPT_SPILLWAY_SIM_REGRANT).word == SPW_SAFETY_UNSAFE,
        .hosts = (enum spw_hosts)get(SPW_OPT_SPILLWAY_SIM_HOST_NUMA).word,
        .rdma = get(SPW_OPT_SPILLWAY_SIM_RDMA).on,
        .peers = get(SPW_OPT_SPILLWAY_SIM_PEERS).on,
        .host_map = get(SPW_OPT_SPILLWAY_SIM_HOST_MAP).on,
        .va_max_bytes = get_bytes(SPW_OPT_SPILLWAY_SIM_VA_MAX),
        .map_max = get(SPW_OPT_SPILLWAY_SIM_MAP_MAX).bytes,
        .payload = get(SPW_OPT_SPILLWAY_SIM_PAYLOAD),
    };
    if (options.link_out == 0) {
        options.link_out = options.link;
    }
}

const struct sim_options *sim_options(void)
{
    pthread_once(&options_once, read_environment);
    return &options;
}
