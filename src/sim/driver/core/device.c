#include "sim/driver/core/device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bounds.h"
#include "sim/driver/core/calls.h"
#include "sim/driver/core/control.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/neighbours.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/core/visible.h"

static struct sim_device devices[SPW_DEVICES_MAX];  /* by index; profile NULL: not yet set up */
static struct sim_device *visible[SPW_DEVICES_MAX]; /* by ordinal */
static int visible_count = -1;                      /* -1: not yet decided */

static size_t total_bytes(const struct spw_gpu_profile *profile, const struct sim_options *options)
{
    size_t own = profile->memory_mib << 20;
    size_t wanted = spw_option_bytes(&options->memory, own);

    return wanted != 0 ? wanted : own;
}

/* The machine's device of that index, visible to the process or not; NULL if there is none. */
static struct sim_device *machine_device(int index)
{
    const struct sim_options *options = sim_options();
    struct sim_device *device;

    if (index < 0 || index >= (int)options->devices) {
        return NULL;
    }
    device = &devices[index];
    if (device->profile == NULL) {
        device->index = index;
        device->profile = spw_gpu_profile_find(options->profile);
        device->sharing = spw_gpu_profile_sharing(device->profile);
        device->total_bytes = total_bytes(device->profile, options);
    }
    return device;
}

/* Warns if torchrun has started more ranks here than there are devices. */
static void compare_with_ranks(void)
{
    static bool said;
    const char *rank = getenv("LOCAL_RANK"), *ranks = getenv("LOCAL_WORLD_SIZE");
    int count = ranks != NULL ? atoi(ranks) : 0, devices_here = (int)sim_options()->devices;

    if (rank != NULL && strcmp(rank, "0") == 0 && count > devices_here) {
        sim_warn_once(&said,
                      "%d ranks run on this machine (LOCAL_WORLD_SIZE), and %d device%s simulated; "
                      "--devices %d gives each rank its own",
                      count, devices_here, devices_here == 1 ? " is" : "s are", count);
    }
}

int sim_device_count(void)
{
    int indices[SPW_DEVICES_MAX];

    if (visible_count < 0) {
        compare_with_ranks();
        visible_count = sim_visible_devices(getenv("CUDA_VISIBLE_DEVICES"),
                                            (int)sim_options()->devices, indices);
        for (int i = 0; i < visible_count; i++) {
            visible[i] = machine_device(indices[i]);
            visible[i]->ordinal = i;
        }
    }
    return visible_count;
}

struct sim_device *sim_device_get(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < sim_device_count() ? visible[ordinal] : NULL;
}

struct sim_device *sim_device_of_index(int index)
{
    for (int i = 0; i < sim_device_count(); i++) {
        if (visible[i]->index == index) {
            return visible[i];
        }
    }
    return NULL;
}

bool sim_device_can_access(const struct sim_device *device, const struct sim_device *owner)
{
    return device == owner || sim_options()->peers;
}

int sim_device_pci_bus(const struct sim_device *device)
{
    return 0x10 + device->index;
}

SIM_EXPORT int spillway_sim_device(int index, struct spillway_sim_device *ret_device)
{
    const struct sim_device *device;

    sim_lock();
    device = machine_device(index);
    if (device != NULL) {
        ret_device->name = device->profile->name;
        sim_uuid_of(index, ret_device->uuid);
        ret_device->pci_bus = sim_device_pci_bus(device);
        ret_device->pci_device_id = device->profile->pci_device;
        ret_device->clock_khz = device->profile->clock_khz;
        ret_device->memory_clock_khz = device->profile->memory_clock_khz;
        ret_device->major = device->profile->major;
        ret_device->minor = device->profile->minor;
        ret_device->total_bytes = device->total_bytes;
        ret_device->used_bytes =
            device->used_bytes + device->host_bytes + sim_neighbours_used(index);
        ret_device->one_memory = device->sharing.one_memory;
    }
    sim_unlock();
    return device != NULL ? 0 : -1;
}

SIM_EXPORT int spillway_sim_processes(int index, struct spillway_sim_process *ret_list, int most)
{
    static struct sim_neighbour list[SIM_NEIGHBOURS]; /* protected by the lock */
    const struct sim_device *device;
    int count = 0;

    sim_lock();
    device = machine_device(index);
    if (device != NULL) {
        count = sim_neighbours_list(index, list, SIM_NEIGHBOURS);
        if (count == 0 && device->used_bytes > 0) {
            list[count++] = (struct sim_neighbour){(int)getpid(), device->used_bytes};
        }
    }
    for (int i = 0; i < count && i < most; i++) {
        ret_list[i] = (struct spillway_sim_process){list[i].pid, list[i].bytes};
    }
    sim_unlock();
    return count;
}
