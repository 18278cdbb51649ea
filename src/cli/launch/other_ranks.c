#include "cli/launch/other_ranks.h"

#include "cli/launch/run_directory.h"
#include "stats/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RANKS_MAX = 4096,
    LOCK_TRIES = 1000,
    LOCK_PAUSE_US = 10000,
};

bool spw_cli_other_ranks_exist(void)
{
    return spw_stats_rank() >= 0 && spw_stats_ranks() > 1;
}

void spw_cli_other_ranks_add(const char *pattern, time_t since)
{
    uint32_t ranks = spw_stats_ranks();
    bool found = true;

    if (!spw_stats_path_has(pattern, 'r')) {
        return;
    }
    /* srun may start one torchrun on each machine, whose ranks are more than those of srun. */
    for (uint32_t i = 0; i < RANKS_MAX && (i < ranks || found); i++) {
        char path[PATH_MAX], rank[16];
        struct stat status;

        snprintf(rank, sizeof(rank), "%" PRIu32, i);
        found = spw_stats_path_expand_for(pattern, rank, path, sizeof(path)) &&
                stat(path, &status) == 0 && status.st_mtime >= since;
        if (found) {
            spw_cli_run_directory_add_recording(path);
        }
    }
}

int spw_cli_other_ranks_lock(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR)) {
            break;
        }
        usleep(LOCK_PAUSE_US);
    }
    return fd;
}
