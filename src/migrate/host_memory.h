/* How much host memory there is: the machine's, and what the process's control groups leave of it.
 *
 * Read from /proc and /sys/fs/cgroup each time it is asked; no locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct spw_migrate_host_memory {
    uint64_t total;        /* of the machine; 0 when it cannot be told */
    uint64_t available;    /* of the machine, caches that can be dropped included */
    bool limited;          /* a control group has a limit */
    uint64_t group_limit;  /* the one that leaves least */
    uint64_t group_leaves; /* of it */
};

/* Fills *ret_memory with what can be told; the rest is 0. */
void spw_migrate_host_memory(struct spw_migrate_host_memory *ret_memory);

/* The same from another root folder than "/": for tests. */
void spw_migrate_host_memory_below(const char *root, struct spw_migrate_host_memory *ret_memory);

/* What may be taken by default: half of what machine and control group leave. */
uint64_t spw_migrate_host_memory_share(const struct spw_migrate_host_memory *memory);
