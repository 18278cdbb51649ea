#include "stats/exit.h"

#include "stats/file.h"
#include "stats/output.h"
#include "stats/path.h"
#include "stats/process.h"
#include "stats/state.h"
#include "stats/summary.h"
#include "system/log.h"
#include "system/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void spw_stats_finish(struct spw_stats *stats)
{
    int running = SPW_STATS_RUNNING;

    if (!atomic_compare_exchange_strong(&stats->state, &running, SPW_STATS_WRITTEN)) {
        return;
    }
    spw_stats_summary(stats, (enum spw_summary)stats->summary, STDERR_FILENO);
    spw_stats_write(stats);
}

/* A child that was made without the fork handlers has another pid, and writes nothing. */
static void at_exit(void)
{
    struct spw_stats *stats = spw_stats_mine();

    if (stats != NULL && stats->pid == (int)getpid()) {
        spw_stats_finish(stats);
    }
}

void spw_stats_start(struct spw_stats *stats, const char *mode, const char *why, const char *path,
                     enum spw_summary summary, int device_count)
{
    char expanded[SPW_STATS_PATH];

    snprintf(stats->mode, sizeof(stats->mode), "%s", mode);
    snprintf(stats->why, sizeof(stats->why), "%s", why);
    spw_stats_process_name(stats->process, sizeof(stats->process));
    stats->rank = spw_stats_rank();
    stats->ranks = spw_stats_ranks();
    stats->device_count = device_count < SPW_DEVICES_MAX ? device_count : SPW_DEVICES_MAX;
    stats->summary = (uint8_t)summary;
    stats->of_rank = path != NULL && spw_stats_path_has(path, 'r');
    if (path != NULL && *path != '\0') {
        if (spw_stats_path_expand(path, expanded, sizeof(expanded))) {
            spw_stats_output_set(SPW_STATS_FILE, expanded);
            spw_stats_path_clear(expanded, stats->start);
        } else {
            spw_log_always(
                "SPILLWAY_STATS=%s: the path is too long (expected less than %d bytes)%s; no "
                "statistics file",
                path, SPW_STATS_PATH,
                spw_start_folder() == NULL ? ", or the folder that it starts from is gone" : "");
        }
    }
    atomic_store_explicit(&stats->state, SPW_STATS_RUNNING, memory_order_release);
    if (!spw_stats_files.at_exit && stats == spw_stats_mine()) {
        spw_stats_files.at_exit = atexit(at_exit) == 0;
    }
}
