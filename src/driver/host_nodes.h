/* The NUMA nodes of the machine that can hold memory for devices.
 *
 * Source: /sys/devices/system/node and the process's cpuset in /proc/self/status. Drivers crash on
 * nodes without memory (nccl#2106), and refuse nodes without CPUs (nccl#2190), such as a GPU's
 * memory. No locking, no allocation. */
#pragma once

#include <stdint.h>

enum { SPW_HOST_NODES = 64 };

/* The nodes with CPUs and memory that this process may use, as bits; nodes from SPW_HOST_NODES on
 * are left out. 0 when the system lists no node. Reads files below the folder `root`; "" for those
 * of the machine. */
uint64_t spw_driver_host_nodes(const char *root);
