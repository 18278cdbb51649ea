#include "cli/launch/gpu_profiles.h"

#include "common/nearest.h"

#include <stdio.h>
#include <string.h>

#define SIM_PROFILE(id, name, memory_mib, ...) {id, (uint64_t)(memory_mib) << 20},
static const struct spw_cli_gpu_profile profiles[] = {
#include "sim/driver/core/profiles.def"
};
#undef SIM_PROFILE

enum { PROFILE_COUNT = sizeof(profiles) / sizeof(*profiles) };

const struct spw_cli_gpu_profile *spw_cli_gpu_profile_find(const char *id)
{
    for (int i = 0; i < PROFILE_COUNT; i++) {
        if (strcmp(profiles[i].id, id) == 0) {
            return &profiles[i];
        }
    }
    return NULL;
}

void spw_cli_gpu_profile_complain(const char *id, char *complaint, size_t capacity)
{
    const char *ids[PROFILE_COUNT];
    const char *nearest;
    size_t used = (size_t)snprintf(complaint, capacity, "not one of");

    for (int i = 0; i < PROFILE_COUNT; i++) {
        ids[i] = profiles[i].id;
        used +=
            (size_t)snprintf(complaint + used, capacity - used, "%s %s", i > 0 ? "," : "", ids[i]);
    }
    nearest = spw_nearest(id, 0, ids, PROFILE_COUNT);
    if (nearest != NULL) {
        snprintf(complaint + used, capacity - used, " (did you mean %s?)", nearest);
    }
}
