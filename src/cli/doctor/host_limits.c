#include "cli/doctor/tables.h"

#include "cli/console/messages.h"
#include "common/minmax.h"
#include "common/options.h"
#include "driver/host_memory.h"
#include "driver/host_place.h"
#include "driver/host_rights.h"

#include <stdint.h>
#include <stdio.h>

enum { STEP_BYTES = 64 << 20, MOST_STEPS = 32, WALL_SHARE = 8 };

/* The limits of this machine. */
struct limits {
    struct spw_host_memory memory;
    struct spw_host_rights rights;
    struct spw_host_limit device; /* what one device may use */
    uint64_t locked;              /* page-locked memory that the driver gave */
    bool refused;                 /* the driver refused more than `locked` */
};

/* Locks memory step by step, and lets go of all of it. Device 0's context must be current. */
static void lock_pages(const struct spw_cli_cuda *cuda, uint64_t room, struct limits *limits)
{
    void *steps[MOST_STEPS];
    int count = 0;

    while (count < MOST_STEPS && !limits->refused && limits->locked + STEP_BYTES <= room) {
        limits->refused = cuda->cuMemHostAlloc(&steps[count], STEP_BYTES, 0) != CUDA_SUCCESS;
        if (!limits->refused) {
            limits->locked += STEP_BYTES;
            count++;
        }
    }
    while (count-- > 0) {
        cuda->cuMemFreeHost(steps[count]);
    }
}

static void try_lock(const struct spw_cli_cuda *cuda, struct limits *limits)
{
    uint64_t room = spw_driver_host_memory_room(&limits->memory).bytes;
    CUcontext context;
    CUdevice device;

    if (cuda->cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuda->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
        return;
    }
    cuda->cuCtxSetCurrent(context);
    lock_pages(cuda, room, limits);
    cuda->cuCtxSetCurrent(NULL);
    cuda->cuDevicePrimaryCtxRelease_v2(device);
}

/* The budget of a device, and below it the wall that was found. */
static struct spw_host_limit limit_of_device(const struct spw_cli_cuda *cuda,
                                             const struct limits *limits)
{
    struct spw_option_value option = spw_option_get(SPW_OPT_SPILLWAY_HOST_LIMIT, NULL, 0);
    struct spw_host_limit limit = {
        .bytes = spw_driver_host_memory_share(&limits->memory) /
                 spw_max(spw_driver_host_gpus(cuda->simulated), 1),
        .bound = spw_driver_host_memory_bound(&limits->memory),
    };
    struct spw_host_limit wall = {
        .bytes = limits->locked - limits->locked / WALL_SHARE,
        .bound = spw_driver_host_rights_wall(&limits->rights, limits->locked, STEP_BYTES),
    };

    if (option.set) {
        limit.bytes = spw_option_bytes(&option, limits->memory.total);
        limit.bound = SPW_HOST_BOUND_OPTION;
    }
    return limits->refused ? spw_host_limit_least(limit, wall) : limit;
}

static void report_machine(const struct limits *limits, struct spw_cli_report *report)
{
    const struct spw_host_memory *memory = &limits->memory;

    spw_cli_report_row(report, "%s\t%s available of %s\t",
                       spw_host_bound_text(SPW_HOST_BOUND_MACHINE), spw_cli_size(memory->available),
                       spw_cli_size(memory->total));
    if (memory->limited) {
        spw_cli_report_row(report, "%s\t%s left of %s\t", spw_host_bound_text(SPW_HOST_BOUND_GROUP),
                           spw_cli_size(memory->group_leaves), spw_cli_size(memory->group_limit));
    } else {
        spw_cli_report_row(report, "%s\tno limit\t", spw_host_bound_text(SPW_HOST_BOUND_GROUP));
    }
}

static void report_rights(const struct limits *limits, struct spw_cli_report *report)
{
    const struct spw_host_rights *rights = &limits->rights;

    spw_cli_report_row(report, "%s\t%s\tnetwork cards (RDMA) count their memory here",
                       spw_host_bound_text(SPW_HOST_BOUND_MEMLOCK),
                       rights->memlock == UINT64_MAX ? "no limit" : spw_cli_size(rights->memlock));
    spw_cli_report_row(report, "WSL2\t%s\t%s", rights->wsl ? "yes" : "no",
                       rights->wsl ? "no block moves to the host, and little memory can be "
                                     "page-locked: often about 1 GiB"
                                   : "");
    spw_cli_report_row(report, "choice of NUMA nodes\t%s\t%s",
                       rights->places ? "allowed" : "refused",
                       rights->places ? ""
                                      : "this container needs the capability SYS_NICE for chunks "
                                        "of host memory at a node");
}

static void report_wall(const struct limits *limits, struct spw_cli_report *report)
{
    if (limits->refused) {
        spw_cli_report_row(report, "page-locked memory\t%s, and no more\t%s",
                           spw_cli_size(limits->locked),
                           spw_host_bound_text(spw_driver_host_rights_wall(
                               &limits->rights, limits->locked, STEP_BYTES)));
    } else {
        spw_cli_report_row(report, "page-locked memory\tat least %s\tmore was not tried",
                           spw_cli_size(limits->locked));
    }
}

void spw_cli_doctor_host_limits(const struct spw_cli_cuda *cuda, struct spw_cli_report *report)
{
    static const char *const columns[] = {"limit", "allows", "remark", NULL};
    struct limits limits = {0};

    spw_driver_host_memory(cuda->simulated, &limits.memory);
    spw_driver_host_rights_below(spw_driver_host_root(cuda->simulated), &limits.rights);
    try_lock(cuda, &limits);
    limits.device = limit_of_device(cuda, &limits);
    spw_cli_report_table(report, "host_limits", "Host memory for blocks that do not fit", columns);
    report_machine(&limits, report);
    report_rights(&limits, report);
    report_wall(&limits, report);
    spw_cli_report_row(report, "**one device**\t%s\t%s sets the limit",
                       spw_cli_size(limits.device.bytes), spw_host_bound_text(limits.device.bound));
}
