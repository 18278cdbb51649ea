#include "sim/driver/core/machine.h"

#include <signal.h>
#include <unistd.h>

#include "common/size.h"
#include "sim/driver/core/neighbours.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/say.h"

static void tell(const struct sim_device *device, uint64_t wanted)
{
    char total[SPW_SIZE_TEXT], all[SPW_SIZE_TEXT], host[SPW_SIZE_TEXT];

    sim_say("a real machine would hang here: its one memory has %s, and device and host "
            "together need %s (%s of it is host memory of this process)",
            spw_size_text(device->total_bytes, total), spw_size_text(wanted, all),
            spw_size_text(device->host_bytes, host));
}

void sim_machine_die(const struct sim_device *device, uint64_t wanted)
{
    if (wanted > device->total_bytes) {
        sim_run_record_died(device, wanted - device->total_bytes);
        sim_neighbours_die(device->index);
        tell(device, wanted);
    }
    for (;;) {
        (void)kill(getpid(), SIGKILL);
    }
}
