#include "sim/driver/core/sim_options.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/driver/core/device.h"

/* The defaults. */
static struct sim_options options = {
    .profile = "h100-80g",
    .devices = 1,
    .host_memory = {.bytes = UINT64_C(64) << 30},
    .host_nodes = 1,
    .unmap = SIM_PER_RANGE,
    .set_access = SIM_PER_RANGE,
    .free_syncs = true,
    .host_numa = true,
    .peers = true,
    .host_map = true,
    .payload = {.permille = 250},
};

static pthread_once_t options_once = PTHREAD_ONCE_INIT;

static void complain(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "spillway sim: %s=%s: expected %s; using the default\n", name, value, expected);
}

/* A variable that is set and not empty, else NULL. */
static const char *given(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* A size in bytes; a share of something is none here. */
static void read_size(const char *name, size_t *value)
{
    const char *text = given(name);
    struct sim_size size;

    if (text == NULL) {
        return;
    }
    if (sim_parse_size(text, &size) && size.permille == 0) {
        *value = size.bytes;
    } else {
        complain(name, text, "a size such as 8GiB, 1.5GiB, 512MiB or bytes");
    }
}

/* A size that may be a share of `whole`. */
static void read_share(const char *name, const char *whole, bool zero_is_valid,
                       struct sim_size *value)
{
    const char *text = given(name);
    struct sim_size size;
    char expected[96];

    if (text == NULL) {
        return;
    }
    if (sim_parse_size(text, &size) && (zero_is_valid || size.permille != 0 || size.bytes != 0)) {
        *value = size;
    } else {
        snprintf(expected, sizeof(expected),
                 "a size such as 8GiB, 512MiB, bytes, or a percentage of %s", whole);
        complain(name, text, expected);
    }
}

static void read_count(const char *name, unsigned int *value, unsigned int least, unsigned int most)
{
    const char *text = given(name);
    uint64_t number;
    char expected[64];

    if (text == NULL) {
        return;
    }
    if (sim_parse_number(text, &number) && number >= least && number <= most) {
        *value = (unsigned int)number;
        return;
    }
    snprintf(expected, sizeof(expected), "a whole number from %u to %u", least, most);
    complain(name, text, expected);
}

static void read_number(const char *name, uint64_t *value)
{
    const char *text = given(name);

    if (text != NULL && !sim_parse_number(text, value)) {
        complain(name, text, "a whole number");
    }
}

/* One of two words; `value` becomes true for the first. */
static void read_choice(const char *name, const char *yes, const char *no, bool *value)
{
    const char *text = given(name);
    char expected[64];

    if (text == NULL) {
        return;
    }
    if (strcasecmp(text, yes) == 0) {
        *value = true;
    } else if (strcasecmp(text, no) == 0) {
        *value = false;
    } else {
        snprintf(expected, sizeof(expected), "%s or %s", yes, no);
        complain(name, text, expected);
    }
}

static void read_switch(const char *name, bool *value)
{
    static const char *const words[][2] = {
        {"on", "off"}, {"1", "0"}, {"yes", "no"}, {"true", "false"}};
    const char *text = given(name);

    if (text == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i][0]) == 0 || strcasecmp(text, words[i][1]) == 0) {
            *value = strcasecmp(text, words[i][0]) == 0;
            return;
        }
    }
    complain(name, text, "on or off");
}

static void read_per(const char *name, enum sim_per *value)
{
    bool range = *value == SIM_PER_RANGE;

    read_choice(name, "range", "chunk", &range);
    *value = range ? SIM_PER_RANGE : SIM_PER_CHUNK;
}

static void read_profile(const char *name)
{
    const char *text = given(name);
    const char *nearest;
    char expected[256];

    if (text == NULL || sim_profile_find(text) != NULL) {
        options.profile = text != NULL ? text : options.profile;
        return;
    }
    nearest = sim_profile_nearest(text);
    snprintf(expected, sizeof(expected), "%s%s%s%s", sim_profile_names(),
             nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
             nearest != NULL ? "?)" : "");
    complain(name, text, expected);
}

static void read_environment(void)
{
    read_profile("SPILLWAY_SIM_PROFILE");
    read_share("SPILLWAY_SIM_MEMORY", "the profile's", false, &options.memory);
    read_count("SPILLWAY_SIM_DEVICES", &options.devices, 1, SIM_MAX_DEVICES);
    read_share("SPILLWAY_SIM_HOST_MEMORY", "the machine's memory", true, &options.host_memory);
    read_count("SPILLWAY_SIM_HOST_NODES", &options.host_nodes, 1, SIM_MAX_HOST_NODES);
    read_number("SPILLWAY_SIM_SEED", &options.seed);
    read_switch("SPILLWAY_SIM_TIME", &options.time);
    options.log_path = given("SPILLWAY_SIM_LOG");
    options.fail = given("SPILLWAY_SIM_FAIL");
    read_per("SPILLWAY_SIM_UNMAP", &options.unmap);
    read_per("SPILLWAY_SIM_SETACCESS", &options.set_access);
    read_switch("SPILLWAY_SIM_UNMAP_WAITS", &options.unmap_waits);
    read_switch("SPILLWAY_SIM_FREE_SYNC", &options.free_syncs);
    read_choice("SPILLWAY_SIM_CAPTURE_VMM", "unsafe", "safe", &options.vmm_unsafe);
    read_switch("SPILLWAY_SIM_HOST_NUMA", &options.host_numa);
    read_switch("SPILLWAY_SIM_PEERS", &options.peers);
    read_switch("SPILLWAY_SIM_HOST_MAP", &options.host_map);
    read_size("SPILLWAY_SIM_VA_MAX", &options.va_max_bytes);
    read_number("SPILLWAY_SIM_MAP_MAX", &options.map_max);
    read_share("SPILLWAY_SIM_PAYLOAD", "the host's available memory", true, &options.payload);
}

const struct sim_options *sim_options(void)
{
    pthread_once(&options_once, read_environment);
    return &options;
}
