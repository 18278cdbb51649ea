#include "stats/output.h"

#include "system/start.h"

#include <stdio.h>
#include <unistd.h>

enum { LINK = SPW_STATS_PATH + 16 };

static const char *const suffixes[SPW_STATS_OUTPUTS] = {
    [SPW_STATS_FILE] = "statistics", [SPW_STATS_RECORDING] = "recording"};

static struct spw_stats_files *const files = &spw_stats_files;

void spw_stats_output_begin(const char *shared)
{
    if (shared[0] == '\0' || !spw_start_path(shared, files->beside, sizeof(files->beside))) {
        files->beside[0] = '\0';
    }
    for (int i = 0; i < SPW_STATS_OUTPUTS; i++) {
        files->paths[i][0] = '\0';
    }
}

static void name_link(enum spw_stats_output output, const char *shared, char ret_link[LINK])
{
    snprintf(ret_link, LINK, "%s.%s", shared, suffixes[output]);
}

void spw_stats_output_set(enum spw_stats_output output, const char *path)
{
    char link[LINK];

    snprintf(files->paths[output], sizeof(files->paths[output]), "%s", path);
    if (files->beside[0] != '\0' && path[0] != '\0') {
        name_link(output, files->beside, link);
        (void)!symlink(files->paths[output], link);
    }
}

const char *spw_stats_output_path(enum spw_stats_output output)
{
    return files->paths[output];
}

void spw_stats_output_find(enum spw_stats_output output, const char *shared)
{
    char link[LINK];
    ssize_t length;

    name_link(output, shared, link);
    length = readlink(link, files->paths[output], SPW_STATS_PATH - 1);
    files->paths[output][length > 0 ? length : 0] = '\0';
}
