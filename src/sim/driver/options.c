#include "sim/driver/options.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/driver/device.h"

/* The defaults. */
static struct sim_options options = {
    .profile = "h100-80g",
    .devices = 1,
    .host_memory_bytes = (size_t)64 << 30,
    .host_nodes = 1,
    .unmap = SIM_PER_RANGE,
    .set_access = SIM_PER_RANGE,
    .free_syncs = true,
    .vmm_unsafe = true,
    .host_numa = true,
    .peers = true,
    .host_map = true,
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

static bool parse_number(const char *text, unsigned long long *ret_value, const char **ret_rest)
{
    char *end;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *ret_value = strtoull(text, &end, 10);
    *ret_rest = end;
    return errno == 0;
}

/* 8GiB, 512MiB, 4KiB, 700G, 1048576: all units are powers of 1024. */
static bool parse_size(const char *text, size_t *ret_bytes)
{
    static const struct {
        const char *suffix;
        unsigned int shift;
    } units[] = {{"", 0},     {"B", 0},  {"K", 10},   {"KiB", 10}, {"M", 20},
                 {"MiB", 20}, {"G", 30}, {"GiB", 30}, {"T", 40},   {"TiB", 40}};
    unsigned long long number;
    const char *rest;

    if (!parse_number(text, &number, &rest)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcasecmp(rest, units[i].suffix) == 0) {
            if (number > (SIZE_MAX >> units[i].shift)) {
                return false;
            }
            *ret_bytes = (size_t)number << units[i].shift;
            return true;
        }
    }
    return false;
}

static void read_size(const char *name, size_t *value)
{
    const char *text = given(name);

    if (text != NULL && !parse_size(text, value)) {
        complain(name, text, "a size such as 8GiB, 512MiB or bytes");
    }
}

static void read_memory(const char *name)
{
    const char *text = given(name);
    unsigned long long number;
    const char *rest;

    if (text == NULL) {
        return;
    }
    if (parse_number(text, &number, &rest) && strcmp(rest, "%") == 0 && number > 0 &&
        number <= 1000) {
        options.memory_percent = (unsigned int)number;
    } else if (!parse_size(text, &options.memory_bytes) || options.memory_bytes == 0) {
        options.memory_bytes = 0;
        complain(name, text,
                 "a size such as 8GiB, 512MiB, bytes, or a percentage of the profile's");
    }
}

static void read_count(const char *name, unsigned int *value, unsigned int least, unsigned int most)
{
    const char *text = given(name);
    unsigned long long number;
    const char *rest;
    char expected[64];

    if (text == NULL) {
        return;
    }
    if (parse_number(text, &number, &rest) && rest[0] == '\0' && number >= least &&
        number <= most) {
        *value = (unsigned int)number;
        return;
    }
    snprintf(expected, sizeof(expected), "a whole number from %u to %u", least, most);
    complain(name, text, expected);
}

static void read_seed(const char *name)
{
    const char *text = given(name);
    unsigned long long number;
    const char *rest;

    if (text == NULL) {
        return;
    }
    if (parse_number(text, &number, &rest) && rest[0] == '\0') {
        options.seed = number;
    } else {
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

static void read_environment(void)
{
    const char *profile = given("SPILLWAY_SIM_PROFILE");

    if (profile != NULL && sim_profile_find(profile) == NULL) {
        complain("SPILLWAY_SIM_PROFILE", profile, sim_profile_names());
    } else if (profile != NULL) {
        options.profile = profile;
    }
    read_memory("SPILLWAY_SIM_MEMORY");
    read_count("SPILLWAY_SIM_DEVICES", &options.devices, 1, SIM_MAX_DEVICES);
    read_size("SPILLWAY_SIM_HOST_MEMORY", &options.host_memory_bytes);
    read_count("SPILLWAY_SIM_HOST_NODES", &options.host_nodes, 1, SIM_MAX_HOST_NODES);
    read_seed("SPILLWAY_SIM_SEED");
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
    read_size("SPILLWAY_SIM_MAP_MAX", &options.map_max);
}

const struct sim_options *sim_options(void)
{
    pthread_once(&options_once, read_environment);
    return &options;
}
