/* Functions for the simulated libraries. They record facts for the verdict: the memory that NCCL's
 * communicators would take on a real card, and the source of cuDNN's engines. They return the
 * number of ranks (SPILLWAY_SIM_WORLD). */
#include "gpu/communicator.h"
#include "sim/driver/core/control.h"
#include "sim/driver/core/device.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"

static int64_t bytes_of(uint32_t mib, int count)
{
    return ((int64_t)mib << 20) * count;
}

/* Records the connections; returns the bytes that the caller has to allocate or free for them. */
static int64_t note(const struct sim_device *device, enum spw_gpu_connection connection, int ranks,
                    int count)
{
    struct spw_gpu_connection_need need =
        spw_gpu_connection_need(device->profile, connection, ranks);
    int64_t taken = sim_options()->overhead ? bytes_of(need.mib, count) : 0;

    sim_run_record_nccl(device, &(struct sim_run_record_nccl){
                                    .communicators = connection == SPW_GPU_COMMUNICATOR ? count : 0,
                                    .bytes = bytes_of(need.mib, count),
                                    .most_bytes = bytes_of(need.most_mib, count),
                                    .taken_bytes = taken,
                                    .ranks = ranks,
                                });
    return taken < 0 ? -taken : taken;
}

SIM_EXPORT unsigned long long spillway_sim_connection(int ordinal, int connection, int ranks,
                                                      int count)
{
    const struct sim_device *device;
    int64_t bytes = 0;

    sim_lock();
    device = sim_device_get(ordinal);
    if (device != NULL) {
        bytes = note(device, (enum spw_gpu_connection)connection, ranks, count);
    }
    sim_unlock();
    return (unsigned long long)bytes;
}

SIM_EXPORT void spillway_sim_engines(int ordinal, int guessed, int search)
{
    const struct sim_device *device;

    sim_lock();
    device = sim_device_get(ordinal);
    if (device != NULL) {
        sim_run_record_engines(device, guessed != 0, search != 0);
    }
    sim_unlock();
}

SIM_EXPORT unsigned int spillway_sim_world(void)
{
    return sim_options()->world;
}
