#include "cli/keep/members.h"

#include "cli/launch/run_directory.h"
#include "cli/recording/blocks.h"
#include "system/fd.h"

#include <stdio.h>

enum { WHY = SPW_CLI_KEEP_NO_MEMBERS };

/* The device of a process that a choice is about. NULL: the pool served none. */
static const struct spw_cli_sim_device *main_device(const struct spw_cli_sim_process *process)
{
    const struct spw_cli_sim_device *found = NULL;

    for (int i = 0; i < process->device_count; i++) {
        const struct spw_cli_sim_device *device = &process->devices[i];

        if (device->pooled && (found == NULL || device->live_peak_bytes > found->live_peak_bytes)) {
            found = device;
        }
    }
    return found;
}

/* Returns the process that wrote a recording, or 0. */
static int writer_of(const char *path)
{
    struct spw_cli_blocks blocks;
    int fd = spw_fd_open_regular(path), pid = 0;

    if (fd >= 0 && spw_cli_blocks_open(&blocks, fd)) {
        pid = blocks.header.pid;
        spw_cli_blocks_close(&blocks);
    }
    return pid;
}

static const char *find_recording(int pid)
{
    size_t count;
    const char *const *paths = spw_cli_run_directory_recordings(&count);

    for (size_t i = 0; i < count; i++) {
        if (writer_of(paths[i]) == pid) {
            return paths[i];
        }
    }
    return NULL;
}

/* True if another process of the run has the same rank. */
static bool shares_rank(const struct spw_cli_sim_result *result,
                        const struct spw_cli_sim_process *process)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct spw_cli_sim_process *other = &result->processes[i];

        if (other != process && other->used && other->rank == process->rank) {
            return true;
        }
    }
    return false;
}

/* Returns false, with the reason, if a process is neither alone nor one of all ranks of a job. */
static bool may_belong(const struct spw_cli_sim_result *result,
                       const struct spw_cli_sim_process *process, size_t users, char why[WHY])
{
    if (users > 1 && (process->rank < 0 || shares_rank(result, process))) {
        (void)snprintf(why, WHY,
                       "%zu processes used a device, and they are not the ranks of a job, one each",
                       users);
    } else if (process->rank >= 0 && process->ranks > users) {
        (void)snprintf(why, WHY, "%zu of the %u ranks of the job ran here, and it needs all", users,
                       process->ranks);
    } else if (users > SPW_CLI_KEEP_MEMBERS) {
        (void)snprintf(why, WHY, "the job has more than %d ranks", SPW_CLI_KEEP_MEMBERS);
    } else {
        return true;
    }
    return false;
}

size_t spw_cli_keep_members(const struct spw_cli_sim_result *result,
                            struct spw_cli_keep_member ret_members[SPW_CLI_KEEP_MEMBERS],
                            char why[WHY])
{
    size_t users = 0, count = 0;

    for (size_t i = 0; i < result->count; i++) {
        users += result->processes[i].used;
    }
    for (size_t i = 0; i < result->count; i++) {
        const struct spw_cli_sim_process *process = &result->processes[i];
        const struct spw_cli_sim_device *device = main_device(process);

        if (process->used && !may_belong(result, process, users, why)) {
            return 0;
        }
        if (process->used && device != NULL) {
            ret_members[count++] = (struct spw_cli_keep_member){
                .device = device,
                .recording = find_recording(process->pid),
            };
        }
    }
    if (count == 0 || count < users) {
        (void)snprintf(why, WHY, "no process is known to have used a device");
        return 0;
    }
    return count;
}
