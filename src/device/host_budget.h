/* The host memory of the machine (of a simulated machine with a simulated GPU), and how much of it
 * the devices may take. No lock. */
#pragma once

#include "migrate/host/host_memory.h"

/* Fills *ret_memory as spw_migrate_host_memory does. A simulated machine without files of its own
 * (SPILLWAY_SIM_ROOT) has SPILLWAY_SIM_HOST_MEMORY, all of it available, since the use of that
 * memory is unknown. */
void spw_device_host_memory(struct spw_migrate_host_memory *ret_memory);

/* The default budget of one device: half of the available memory, divided by the number of the
 * job's ranks on this machine, as each rank uses one device. Without a job, it is divided by the
 * number of all GPUs of the machine, because other processes may use GPUs that are not visible
 * here. */
uint64_t spw_device_host_share(const struct spw_migrate_host_memory *memory);

/* Reads the memory again. Returns how many more bytes may be taken now, UINT64_MAX when unknown. */
uint64_t spw_device_host_room(void);
