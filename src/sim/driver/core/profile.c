#include "sim/driver/core/profile.h"

#include <string.h>

#include "common/nearest.h"

static const struct sim_profile profiles[] = {
#define SIM_PROFILE(...) {__VA_ARGS__},
#include "sim/driver/core/profiles.def"
#undef SIM_PROFILE
};

static const char *const ids[] = {
#define SIM_PROFILE(id, ...) id,
#include "sim/driver/core/profiles.def"
#undef SIM_PROFILE
};

#define PROFILE_COUNT (sizeof(profiles) / sizeof(profiles[0]))

const struct sim_profile *sim_profile_find(const char *id)
{
    for (size_t i = 0; i < PROFILE_COUNT; i++) {
        if (strcmp(profiles[i].id, id) == 0) {
            return &profiles[i];
        }
    }
    return NULL;
}

const char *sim_profile_names(void)
{
    static const char names[] = "one of"
#define SIM_PROFILE(id, ...) " " id
#include "sim/driver/core/profiles.def"
#undef SIM_PROFILE
        ;

    return names;
}

const char *sim_profile_nearest(const char *text)
{
    return spw_nearest(text, 0, ids, PROFILE_COUNT);
}
