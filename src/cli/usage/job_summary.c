#include "cli/usage/usage.h"

#include "cli/console/messages.h"
#include "cli/launch/run_directory.h"
#include "common/options.h"
#include "stats/stats.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

struct extreme {
    uint64_t bytes;
    int64_t rank;
};

struct job {
    int64_t first; /* the first rank found; -1: none yet */
    bool several;  /* other ranks were found */
    size_t processes;
    struct extreme least, most; /* the least and the largest peak of a device */
    struct extreme host;        /* the largest peak on the host */
};

static void take_device(struct job *job, const struct spw_stats *stats, int ordinal)
{
    const struct spw_counters *counters = &stats->devices[ordinal].counters;
    uint64_t peak = spw_counter_get(&counters->live_peak_bytes);
    uint64_t host = spw_counter_get(&counters->host_peak_bytes);

    if (peak == 0) {
        return;
    }
    if (job->processes == 0 || peak < job->least.bytes) {
        job->least = (struct extreme){peak, stats->rank};
    }
    if (peak > job->most.bytes) {
        job->most = (struct extreme){peak, stats->rank};
    }
    if (host > job->host.bytes) {
        job->host = (struct extreme){host, stats->rank};
    }
    job->first = job->first < 0 ? stats->rank : job->first;
    job->several |= stats->rank != job->first;
    job->processes++;
}

static void take_process(const char *folder, const char *name, void *context)
{
    struct spw_stats *stats;
    char path[PATH_MAX + 256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    stats = spw_stats_open(path);
    for (int i = 0; stats != NULL && stats->rank >= 0 && i < stats->device_count; i++) {
        take_device(context, stats, i);
    }
    spw_stats_close(stats);
}

static void add(struct spw_cli_line *line, const struct extreme *extreme)
{
    spw_cli_line_add(line, "%s (rank %" PRId64 ")", spw_cli_size(extreme->bytes), extreme->rank);
}

void spw_cli_job_summary(void)
{
    struct job job = {.first = -1};
    struct spw_cli_line line = {""};

    if (spw_option_get(SPW_OPT_SPILLWAY_SUMMARY, NULL, 0).word < SPW_SUMMARY_SHORT) {
        return;
    }
    spw_cli_run_directory_each(take_process, &job);
    if (!job.several) {
        return;
    }
    spw_cli_line_add(&line, "all ranks here: peak live ");
    add(&line, &job.least);
    spw_cli_line_add(&line, " to ");
    add(&line, &job.most);
    if (job.host.bytes > 0) {
        spw_cli_line_add(&line, "; peak on the host up to ");
        add(&line, &job.host);
    }
    fprintf(stderr, "spillway: %s\n", line.text);
}
