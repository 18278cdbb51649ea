/* The host memory of the machine, and the part of it that the devices may use. With a simulated
 * GPU, the machine is the simulated one. No lock. */
#pragma once

#include "driver/host_memory.h"

/* Fills *ret_memory (driver/host_memory.h). */
void spw_device_host_memory(struct spw_host_memory *ret_memory);

/* Returns the default budget of one device: half of the available memory, divided by the number of
 * the job's ranks on this machine. Each rank uses one device. Without a job, the divisor is the
 * number of all GPUs of the machine, because other processes may use GPUs that are not visible
 * here. */
uint64_t spw_device_host_share(const struct spw_host_memory *memory);

/* Reads the state of the host memory again. Returns how many more bytes may be used now; UINT64_MAX
 * if unknown. */
struct spw_host_limit spw_device_host_room(void);

/* Returns the limit that explains why the driver refused more host memory when `wall_bytes` were
 * page-locked, although the machine and the control groups had room. */
enum spw_host_bound spw_device_host_wall(uint64_t wall_bytes);
