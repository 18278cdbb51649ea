#include "cli/launch/run_directory.h"

#include "callsite/report.h"
#include "cli/console/messages.h"
#include "cli/inspect/call_sites.h"
#include "cli/inspect/process.h"
#include "cli/launch/leftovers.h"
#include "cli/recording/blocks.h"
#include "common/grow.h"
#include "stats/exit.h"
#include "stats/file.h"
#include "stats/output.h"
#include "stats/stats.h"
#include "system/fd.h"
#include "system/pid.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char run_folder[PATH_MAX]; /* "": there is none */
static int claim = -1;            /* the descriptor that locks it; -1: none */
static bool joined;               /* it belongs to another launcher */

static bool make_folder(const char *parent)
{
    snprintf(run_folder, sizeof(run_folder), "%s/" SPW_CLI_RUN_FOLDER, parent);
    if (mkdtemp(run_folder) == NULL) {
        run_folder[0] = '\0';
        return false;
    }
    claim = spw_cli_leftovers_claim(run_folder);
    return true;
}

bool spw_cli_run_directory_create(const char *command)
{
    const char *temporary = getenv("TMPDIR");

    temporary = temporary != NULL && *temporary == '/' ? temporary : "/tmp";
    spw_cli_leftovers_remove("/dev/shm");
    spw_cli_leftovers_remove(temporary);
    if (make_folder("/dev/shm") || make_folder(temporary)) {
        setenv("SPILLWAY_RUN_DIR", run_folder, 1);
        return true;
    }
    unsetenv("SPILLWAY_RUN_DIR");
    spw_cli_complain(
        command,
        "cannot create a folder in /dev/shm or %s (%s): statistics of a program that is "
        "killed will be lost",
        temporary, strerror(errno));
    return false;
}

bool spw_cli_run_directory_join(void)
{
    const char *folder = getenv("SPILLWAY_RUN_DIR");
    struct stat status;

    joined = folder != NULL && *folder == '/' && strlen(folder) < sizeof(run_folder) &&
             lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
             (status.st_mode & 077) == 0;
    if (joined) {
        snprintf(run_folder, sizeof(run_folder), "%s", folder);
    }
    return joined;
}

/* Returns true if `pid` is the process of the statistics. Returns false for a zombie, and for a
 * later process with the same pid. */
static bool is_process(int pid, const struct spw_stats *stats)
{
    uint64_t start;
    char state;

    return spw_pid_start(pid, &start, &state) && state != 'Z' && state != 'X' &&
           start == stats->start && spw_cli_process_own_pid(pid) == stats->pid;
}

/* Searches all processes, because the statistics may contain the pid inside a container, which
 * differs from the pid outside. */
static bool is_running(const struct spw_stats *stats)
{
    bool found = is_process(stats->pid, stats);
    const struct dirent *entry;
    DIR *processes;
    uint64_t start;
    char state;

    if (!spw_pid_start(0, &start, &state)) { /* /proc is not mounted */
        return kill(stats->pid, 0) == 0 || errno != ESRCH;
    }
    processes = opendir("/proc");
    while (!found && processes != NULL && (entry = readdir(processes)) != NULL) {
        int pid = (int)strtol(entry->d_name, NULL, 10);

        found = pid > 0 && is_process(pid, stats);
    }
    if (processes != NULL) {
        closedir(processes);
    }
    return found;
}

/* The call sites of the process whose statistics are being written. */
static struct spw_callsite_shm *sites;

static void report_sites(struct spw_writer *writer)
{
    spw_callsite_report(writer, sites->charges, sites->pinned, (int)sites->devices);
}

/* Opens the file of a process's call sites in `folder`. Ignores the folder in the statistics. */
static int open_sites(const char *folder, const struct spw_stats *stats)
{
    const char *name = strrchr(stats->sites, '/');
    char path[PATH_MAX + SPW_STATS_PATH];

    if (name == NULL) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s%s", folder, name);
    return spw_fd_open_regular(path);
}

static void finish(const char *folder, struct spw_stats *stats)
{
    bool unwritten = atomic_load(&stats->state) == SPW_STATS_RUNNING &&
                     spw_stats_output_path(SPW_STATS_FILE)[0] != '\0';
    int file = unwritten ? open_sites(folder, stats) : -1;

    sites = file >= 0 ? spw_cli_call_sites_read(file) : NULL;
    spw_stats_extend(sites != NULL ? report_sites : NULL);
    spw_stats_finish(stats);
    spw_stats_extend(NULL);
    spw_cli_call_sites_close(sites);
    sites = NULL;
    if (file >= 0) {
        close(file);
    }
}

/* The recordings of all runs of this command. */
static struct {
    const char **paths;
    size_t count, capacity;
} recordings;

void spw_cli_run_directory_add_recording(const char *path)
{
    const char *copy;

    for (size_t i = 0; i < recordings.count; i++) {
        if (strcmp(recordings.paths[i], path) == 0) {
            return;
        }
    }
    copy = access(path, F_OK) == 0 ? strdup(path) : NULL;
    if (copy != NULL && SPW_GROW(&recordings.paths, &recordings.capacity, recordings.count + 1)) {
        recordings.paths[recordings.count++] = copy;
    } else {
        free((char *)copy);
    }
}

const char *const *spw_cli_run_directory_recordings(size_t *ret_count)
{
    *ret_count = recordings.count;
    return recordings.paths;
}

/* Finishes the output files of one process. Symbolic links contain the paths of these files
 * (stats/output.h). */
static void finish_one(const char *folder, const char *name, void *context)
{
    char path[PATH_MAX + 256];
    struct spw_stats *stats;

    (void)context;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    stats = spw_stats_open(path);
    if (stats != NULL) {
        stats->pid = atoi(name);
    }
    if (stats != NULL && !is_running(stats)) {
        spw_stats_output_find(SPW_STATS_FILE, path);
        spw_stats_output_find(SPW_STATS_RECORDING, path);
        finish(folder, stats);
        if (spw_stats_output_path(SPW_STATS_RECORDING)[0] != '\0') {
            (void)spw_cli_recording_compress(spw_stats_output_path(SPW_STATS_RECORDING));
            spw_cli_run_directory_add_recording(spw_stats_output_path(SPW_STATS_RECORDING));
        }
    }
    spw_stats_close(stats);
}

static void unlink_one(const char *folder, const char *name, void *context)
{
    char path[PATH_MAX + 256];

    (void)context;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    unlink(path);
}

static int is_there(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Excludes the links of stats/output.h. */
static int is_file(const struct dirent *entry)
{
    return is_there(entry) && entry->d_type != DT_LNK;
}

static void visit_all(int (*takes)(const struct dirent *entry),
                      void (*visit)(const char *folder, const char *name, void *context),
                      void *context)
{
    struct dirent **entries = NULL;
    int count = run_folder[0] != '\0' ? scandir(run_folder, &entries, takes, versionsort) : -1;

    for (int i = 0; i < count; i++) {
        visit(run_folder, entries[i]->d_name, context);
        free(entries[i]);
    }
    free(entries);
}

void spw_cli_run_directory_each(void (*visit)(const char *folder, const char *name, void *context),
                                void *context)
{
    visit_all(is_file, visit, context);
}

void spw_cli_run_directory_finish(void)
{
    spw_cli_run_directory_each(finish_one, NULL);
}

void spw_cli_run_directory_remove(void)
{
    if (run_folder[0] != '\0' && !joined) {
        visit_all(is_there, unlink_one, NULL);
        spw_cli_leftovers_release(run_folder, claim);
        claim = -1;
        rmdir(run_folder);
    }
    run_folder[0] = '\0';
}
