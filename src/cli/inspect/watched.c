#include "cli/inspect/watched.h"

#include "cli/console/messages.h"
#include "system/clock.h"
#include "system/pid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MILLISECONDS = 1000 };

static struct spw_stats stats; /* a copy of the file that is being read */

static void take_look(struct spw_cli_look *ret_look)
{
    ret_look->time_ms = spw_clock_ns() / 1000000;
    for (int i = 0; i < stats.device_count; i++) {
        const struct spw_counters *from = &stats.devices[i].counters;
        struct spw_counters *to = &ret_look->counters[i];

#define SPW_COUNTER(name, kind, help) spw_counter_set(&to->name, spw_counter_get(&from->name));
#include "common/counters.def"
#undef SPW_COUNTER
    }
}

static void take_texts(struct spw_cli_watched *watched)
{
    watched->rank = stats.rank;
    watched->simulated = stats.simulated;
    watched->control = (enum spw_control_state)atomic_load(&stats.control.state);
    watched->device_count = stats.device_count;
    memcpy(watched->mode, stats.mode, sizeof(watched->mode));
    memcpy(watched->process, stats.process, sizeof(watched->process));
    memcpy(watched->policy, stats.policy, sizeof(watched->policy));
    if (watched->sites[0] == '\0') {
        snprintf(watched->sites, sizeof(watched->sites), "%s", stats.sites);
    }
}

static enum spw_cli_watch open_file(int pid, const char *path, int *ret_file)
{
    *ret_file = spw_cli_process_open(pid, path);
    if (*ret_file >= 0) {
        return SPW_CLI_WATCH_OPENED;
    }
    return errno == EACCES  ? SPW_CLI_WATCH_PRIVATE
           : errno == EPERM ? SPW_CLI_WATCH_FOREIGN
                            : SPW_CLI_WATCH_CLOSED;
}

static enum spw_cli_watch begin(struct spw_cli_watched *watched)
{
    char state;

    if (!spw_pid_start(watched->pid, &watched->start, &state) ||
        !spw_stats_read(watched->stats_file, &stats)) {
        return SPW_CLI_WATCH_VERSION;
    }
    if (stats.pid != spw_cli_process_own_pid(watched->pid)) {
        return SPW_CLI_WATCH_OTHER;
    }
    take_texts(watched);
    take_look(&watched->now);
    watched->before = watched->now;
    return SPW_CLI_WATCH_OPENED;
}

enum spw_cli_watch spw_cli_watched_open(int pid, struct spw_cli_watched *ret_watched)
{
    static const enum spw_cli_watch results[] = {
        [SPW_CLI_FOUND_NO_PROCESS] = SPW_CLI_WATCH_NO_PROCESS,
        [SPW_CLI_FOUND_DENIED] = SPW_CLI_WATCH_DENIED,
        [SPW_CLI_FOUND_NOTHING] = SPW_CLI_WATCH_NOTHING,
    };
    char path[SPW_CLI_PROCESS_PATH];
    enum spw_cli_found found;
    enum spw_cli_watch result;

    memset(ret_watched, 0, sizeof(*ret_watched));
    ret_watched->pid = pid;
    found = spw_cli_process_find(pid, path, ret_watched->sites);
    if (found != SPW_CLI_FOUND) {
        return results[found];
    }
    result = open_file(pid, path, &ret_watched->stats_file);
    if (result != SPW_CLI_WATCH_OPENED) {
        return result;
    }
    result = begin(ret_watched);
    if (result != SPW_CLI_WATCH_OPENED) {
        spw_cli_watched_close(ret_watched);
    }
    return result;
}

void spw_cli_watched_close(struct spw_cli_watched *watched)
{
    (void)close(watched->stats_file);
    watched->stats_file = -1;
}

bool spw_cli_watched_read(struct spw_cli_watched *watched)
{
    if (!spw_stats_read(watched->stats_file, &stats)) {
        return false;
    }
    watched->before = watched->now;
    take_texts(watched);
    take_look(&watched->now);
    return true;
}

void spw_cli_watched_complain(const char *command, int pid, enum spw_cli_watch problem)
{
    static const char *const texts[] = {
        [SPW_CLI_WATCH_PRIVATE] = "only its user and root may look",
        [SPW_CLI_WATCH_FOREIGN] = "the file of its statistics belongs to another user",
        [SPW_CLI_WATCH_CLOSED] = "its statistics cannot be opened",
        [SPW_CLI_WATCH_VERSION] = "it runs another version of spillway",
        [SPW_CLI_WATCH_OTHER] = "its statistics belong to another process",
    };
    char descendants[256];

    switch (problem) {
    case SPW_CLI_WATCH_NO_PROCESS:
        spw_cli_complain(command, "there is no process %d", pid);
        return;
    case SPW_CLI_WATCH_DENIED:
        spw_cli_complain(
            command,
            "process %d may not be read: only its user and root may, and not from inside "
            "another container",
            pid);
        return;
    case SPW_CLI_WATCH_NOTHING:
        spw_cli_process_descendants(pid, descendants, sizeof(descendants));
        spw_cli_complain(command,
                         "process %d does not run under spillway, or does not use CUDA yet%s%s%s",
                         pid, descendants[0] != '\0' ? " (descendants that do: " : "", descendants,
                         descendants[0] != '\0' ? ")" : "");
        return;
    default:
        spw_cli_complain(command, "process %d: %s", pid, texts[problem]);
        return;
    }
}

bool spw_cli_watched_lives(const struct spw_cli_watched *watched)
{
    uint64_t start;
    char state;

    return spw_pid_start(watched->pid, &start, &state) && start == watched->start && state != 'Z' &&
           state != 'X';
}

bool spw_cli_watched_replaced(const struct spw_cli_watched *watched)
{
    return !spw_cli_process_maps(watched->pid, watched->stats_file);
}

uint64_t spw_cli_watched_rate(const struct spw_cli_watched *watched, const _Atomic uint64_t *now,
                              const _Atomic uint64_t *before)
{
    uint64_t time = watched->now.time_ms - watched->before.time_ms;
    uint64_t last = spw_counter_get(now), first = spw_counter_get(before);
    uint64_t more = last > first ? last - first : 0;

    if (time == 0 || more > UINT64_MAX / MILLISECONDS) { /* no time passed, or no valid figure */
        return 0;
    }
    return more * MILLISECONDS / time;
}

bool spw_cli_watched_uses(const struct spw_cli_watched *watched, int device)
{
    const struct spw_counters *counters = &watched->now.counters[device];

    return spw_counter_get(&counters->live_peak_bytes) > 0 ||
           spw_counter_get(&counters->passed_allocs) > 0 || spw_counter_get(&counters->ooms) > 0;
}
