#include "sim/libs/nccl/absent.h"

#include <pthread.h>

#include "sim/driver/core/control.h"
#include "sim/libs/common/driver.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool absent;
static _Thread_local int split_ranks;

static void ask(void)
{
    __typeof__(&spillway_sim_world) world;

    *(void **)&world = sim_shim_simulator("spillway_sim_world");
    absent = world != NULL && world() > 0;
}

bool sim_nccl_others_are_absent(void)
{
    (void)pthread_once(&once, ask);
    return absent;
}

SIM_SHIM_EXPORT void spillway_sim_nccl_split(int ranks)
{
    split_ranks = ranks;
}

int sim_nccl_absent_split(void)
{
    return split_ranks;
}
