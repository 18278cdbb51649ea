#include "sim/driver/core/clock.h"

#include "sim/driver/core/sim_options.h"

static uint64_t now;

bool sim_clock_is_on(void)
{
    return sim_options()->time;
}

uint64_t sim_clock_now(void)
{
    return now;
}

void sim_clock_set(uint64_t ns)
{
    now = ns;
}
