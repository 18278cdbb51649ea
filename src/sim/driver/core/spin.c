#include "sim/driver/core/spin.h"

#include <stdint.h>

#include "sim/driver/core/calls.h"
#include "sim/driver/core/sim_options.h"

static uint64_t launches; /* launches since the last read */
static uint64_t distance; /* launches between the last two reads */
static uint64_t reads;    /* reads in a row with equal distances */

void sim_spin_launched(void)
{
    launches++;
}

void sim_spin_fed(void)
{
    reads = 0;
}

void sim_spin_read(void)
{
    reads = launches == distance ? reads + 1 : 1;
    distance = launches;
    launches = 0;
}

bool sim_spin_is_endless(void)
{
    static bool said;
    uint64_t most = sim_options()->spin;

    if (most == 0 || reads < most) {
        return false;
    }
    sim_warn_once(&said,
                  "the program has read %llu results in a row that are not computed here, without "
                  "giving the device new data: it may wait for one of them without end. Reading "
                  "fails now, with CUDA_ERROR_NOT_SUPPORTED; SPILLWAY_SIM_SPIN=0 lets it go on",
                  (unsigned long long)reads);
    return true;
}
