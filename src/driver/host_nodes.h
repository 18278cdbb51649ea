/* The NUMA nodes of the machine that can hold memory for devices.
 *
 * Source: /sys/devices/system/node, and the process's cpuset in /proc/self/status. Drivers crash on
 * nodes without memory (nccl#2106). They refuse nodes without CPUs, such as a GPU's memory
 * (nccl#2190). No locking, no allocation. */
#pragma once

#include <stdint.h>

enum { SPW_HOST_NODES = 64 };

/* Returns the nodes that have CPUs and memory and that this process may use, as bits. Nodes from
 * SPW_HOST_NODES on are ignored. Returns 0 if the system lists no node. The files are read below
 * the folder `root`; "" for the files of the machine. */
uint64_t spw_driver_host_nodes(const char *root);
