#include "sim/driver/memory/payload.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver/core/calls.h"
#include "sim/driver/core/control.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/memory/backing.h"

/* Smaller copies and fills always move data. */
#define LARGE_BYTES ((size_t)1 << 20)

static unsigned long long dropped_bytes;

/* The number behind `field` at the beginning of a line of a file; UINT64_MAX if there is none. */
static uint64_t read_field(const char *path, const char *field)
{
    FILE *file = fopen(path, "re");
    unsigned long long value;
    uint64_t found = UINT64_MAX;
    char line[256];

    if (file == NULL) {
        return UINT64_MAX;
    }
    while (found == UINT64_MAX && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0 &&
            sscanf(line + strlen(field), "%llu", &value) == 1) {
            found = value;
        }
    }
    fclose(file);
    return found;
}

/* Bytes that the process's control group (version 2) may still use; UINT64_MAX if it has no limit.
 * Limits of parent groups are ignored. */
static uint64_t group_available(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char group[256] = "", path[400];
    uint64_t most, used;

    if (file == NULL) {
        return UINT64_MAX;
    }
    if (fscanf(file, "0::%255s", group) != 1) {
        group[0] = '\0';
    }
    fclose(file);
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
    most = read_field(path, "");
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", group);
    used = read_field(path, "");
    if (most == UINT64_MAX || used == UINT64_MAX) {
        return UINT64_MAX;
    }
    return most > used ? most - used : 0;
}

static uint64_t host_available(void)
{
    uint64_t machine = read_field("/proc/meminfo", "MemAvailable:");
    uint64_t group = group_available();

    machine = machine == UINT64_MAX ? UINT64_C(1) << 30 : machine << 10; /* KiB */
    return group < machine ? group : machine;
}

static uint64_t limit(void)
{
    static uint64_t bytes = UINT64_MAX; /* not yet known */

    if (bytes == UINT64_MAX) {
        bytes = spw_option_bytes(&sim_options()->payload, host_available());
    }
    return bytes;
}

bool sim_payload_has_room(size_t size, size_t replaced)
{
    return size < LARGE_BYTES || sim_backing_bytes() + size - replaced <= limit();
}

void sim_payload_drop(size_t size)
{
    static bool said;

    dropped_bytes += size;
    sim_warn_once(
        &said,
        "the content of simulated memory takes %llu MiB of host memory and SPILLWAY_SIM_PAYLOAD "
        "allows %llu MiB: copies of 1 MiB or more copy nothing if there is no room, and their "
        "destination reads as zeros",
        (unsigned long long)sim_backing_bytes() >> 20, (unsigned long long)limit() >> 20);
}

SIM_EXPORT unsigned long long spillway_sim_payload(unsigned long long *ret_dropped)
{
    unsigned long long bytes;

    sim_lock();
    bytes = sim_backing_bytes();
    if (ret_dropped != NULL) {
        *ret_dropped = dropped_bytes;
    }
    sim_unlock();
    return bytes;
}
