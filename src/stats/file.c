#include "stats/file.h"

#include "common/host_bound.h"
#include "stats/output.h"
#include "stats/path.h"
#include "stats/state.h"
#include "system/create.h"
#include "system/log.h"
#include "system/room.h"
#include "system/uncancelled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_PATH = SPW_STATS_PATH + 64 };

void spw_stats_extend(void (*put)(struct spw_writer *writer))
{
    atomic_store(&spw_stats_files.extension, put);
}

static void put_driver_calls(struct spw_writer *writer, const struct spw_stats *stats,
                             const struct spw_stats_device *device)
{
    bool first = true;

    spw_write(writer, ", \"driver_calls\": {");
    for (int i = 0; i < SPW_STATS_CALLS && stats->call_names[i][0] != '\0'; i++) {
        uint64_t count = spw_counter_get(&device->driver_calls[i]);

        if (count == 0) {
            continue;
        }
        spw_write(writer, first ? "" : ", ");
        spw_write_string(writer, stats->call_names[i]);
        spw_write(writer, ": ");
        spw_write_number(writer, count);
        first = false;
    }
    spw_write(writer, "}");
}

/* Writes the key of a record that threads share, and claims the record. Writes null and returns
 * false if there is no record yet, or if another thread keeps it. */
static bool claim_record(struct spw_writer *writer, const char *key, atomic_flag *busy,
                         const _Atomic uint64_t *count)
{
    spw_write_key(writer, key);
    if (spw_stats_claim(busy)) {
        if (atomic_load(count) > 0) {
            return true;
        }
        spw_stats_unclaim(busy);
    }
    spw_write(writer, "null");
    return false;
}

static void put_refusal(struct spw_writer *writer, struct spw_stats_refusal *refusal)
{
    if (!claim_record(writer, "last_oom", &refusal->busy, &refusal->count)) {
        return;
    }
    spw_write(writer, "{\"allocation\": ");
    spw_write_number(writer, refusal->last.number);
    spw_write_figure(writer, "bytes", refusal->last.bytes);
    spw_write_figure(writer, "missing_bytes", refusal->last.missing_bytes);
    spw_write_text(writer, "api", refusal->last.api);
    spw_write_text(writer, "thread", refusal->last.thread);
    spw_write_figure(writer, "tid", (uint64_t)refusal->last.tid);
    spw_write(writer, "}");
    spw_stats_unclaim(&refusal->busy);
}

static void put_holders(struct spw_writer *writer, const struct spw_stats_oom *oom)
{
    spw_write(writer, ", \"sites\": [");
    for (int i = 0; i < oom->holder_count && i < SPW_STATS_HOLDERS; i++) {
        const struct spw_stats_holder *holder = &oom->holders[i];

        spw_write(writer, i == 0 ? "\n  {\"id\": " : ",\n  {\"id\": ");
        spw_write_number(writer, holder->site);
        spw_write_figure(writer, "bytes", holder->bytes);
        spw_write_figure(writer, "blocks", holder->blocks);
        spw_write_text(writer, "label", holder->label);
        spw_write(writer, "}");
    }
    spw_write(writer, "]");
}

/* Figures that NVML did not give are null. */
static void put_usage(struct spw_writer *writer, const struct spw_stats_oom *oom)
{
    if (oom->usage_known) {
        spw_write_figure(writer, "context_bytes", oom->own_other_bytes);
        spw_write_figure(writer, "other_process_bytes", oom->other_process_bytes);
    } else {
        spw_write(writer, ", \"context_bytes\": null, \"other_process_bytes\": null");
    }
}

static void put_oom(struct spw_writer *writer, struct spw_stats_oom *oom)
{
    if (!claim_record(writer, "oom", &oom->busy, &oom->count)) {
        return;
    }
    spw_write(writer, "{\"device\": ");
    spw_write_number(writer, (uint64_t)oom->device);
    spw_write_figure(writer, "bytes", oom->bytes);
    spw_write_figure(writer, "missing_bytes", oom->missing_bytes);
    spw_write_text(writer, "api", oom->api);
    spw_write_figure(writer, "site", oom->site);
    spw_write_text(writer, "label", oom->label);
    spw_write_figure(writer, "total_bytes", oom->total_bytes);
    spw_write_figure(writer, "free_bytes", oom->free_bytes);
    spw_write_figure(writer, "limit_bytes", oom->limit_bytes);
    spw_write_figure(writer, "live_bytes", oom->live_bytes);
    spw_write_figure(writer, "committed_bytes", oom->committed_bytes);
    spw_write_figure(writer, "spare_bytes", oom->spare_bytes);
    spw_write_figure(writer, "largest_free_bytes", oom->largest_free_bytes);
    spw_write_figure(writer, "host_bytes", oom->host_bytes);
    spw_write_figure(writer, "host_limit_bytes", oom->host_limit_bytes);
    spw_write_text(writer, "host_bound", spw_host_bound_key(oom->host_bound));
    spw_write_figure(writer, "host_total_bytes", oom->host_total_bytes);
    spw_write_figure(writer, "host_available_bytes", oom->host_available_bytes);
    spw_write_key(writer, "one_memory");
    spw_write(writer, oom->one_memory ? "true" : "false");
    spw_write_figure(writer, "reserve_bytes", oom->reserve_bytes);
    spw_write_figure(writer, "process_host_bytes", oom->process_host_bytes);
    spw_write_figure(writer, "pinned_bytes", oom->pinned_bytes);
    put_usage(writer, oom);
    spw_write_figure(writer, "holding_sites", oom->holding_sites);
    put_holders(writer, oom);
    spw_write_key(writer, "rule");
    spw_write(writer, oom->rule[0] != '\0' ? oom->rule : "null");
    spw_write_figure(writer, "rule_bytes", oom->rule_bytes);
    spw_write(writer, "}");
    spw_stats_unclaim(&oom->busy);
}

static void put_device(struct spw_writer *writer, struct spw_stats *stats, int ordinal)
{
    struct spw_stats_device *device = &stats->devices[ordinal];

    spw_write(writer, "{\"ordinal\": ");
    spw_write_number(writer, (uint64_t)ordinal);
#define SPW_COUNTER(name, kind, help)                                                              \
    spw_write_key(writer, #name);                                                                  \
    spw_write_number(writer, spw_counter_get(&device->counters.name));
#include "common/counters.def"
#undef SPW_COUNTER
    spw_write_text(writer, "host_bound_name",
                   spw_host_bound_key(spw_counter_get(&device->counters.host_bound)));
    put_driver_calls(writer, stats, device);
    put_refusal(writer, &device->refusal);
    spw_write(writer, "}");
}

static void put_tally(struct spw_writer *writer, const struct spw_account *tally)
{
    const struct {
        const char *key;
        const _Atomic uint64_t *value;
    } rows[] = {
        {"matched", &tally->allocs},        {"refused", &tally->refused},
        {"live_bytes", &tally->live},       {"live_peak_bytes", &tally->live_peak},
        {"host_bytes", &tally->host},       {"host_peak_bytes", &tally->host_peak},
        {"spilled_bytes", &tally->spilled}, {"promoted_bytes", &tally->promoted},
        {"unmet", &tally->unmet},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        spw_write_figure(writer, rows[i].key, spw_counter_get(rows[i].value));
    }
}

/* Every rule of the policy in force, on every device. */
static void put_rules(struct spw_writer *writer, const struct spw_stats *stats)
{
    const char *comma = "";

    if (stats->policy[0] == '\0') {
        return;
    }
    spw_write_text(writer, "policy", stats->policy);
    spw_write(writer, ", \"rules\": [");
    for (int i = 0; i < stats->device_count && i < SPW_DEVICES_MAX; i++) {
        for (int rule = 0; rule < SPW_ACCOUNTS && stats->rule_names[rule][0] != '\0'; rule++) {
            spw_write(writer, comma);
            spw_write(writer, "\n  {\"name\": ");
            spw_write_string(writer, stats->rule_names[rule]);
            spw_write_figure(writer, "device", (uint64_t)i);
            put_tally(writer, &stats->devices[i].rules[rule]);
            spw_write(writer, "}");
            comma = ",";
        }
    }
    spw_write(writer, "\n]");
}

/* Writes the whole file. spw_stats_path_owner recognises its first bytes. */
static void put_stats(struct spw_writer *writer, struct spw_stats *stats)
{
    void (*put_extension)(struct spw_writer *);

    spw_write(writer, "{\"schema\": 1, \"pid\": ");
    spw_write_number(writer, (uint64_t)stats->pid);
    spw_write_text(writer, "mode", stats->mode);
    spw_write_text(writer, "why", stats->why);
    spw_write_text(writer, "process", stats->process);
    if (stats->rank >= 0) {
        spw_write_figure(writer, "rank", (uint64_t)stats->rank);
    }
    spw_write(writer, ", \"devices\": [");
    for (int i = 0; i < stats->device_count && i < SPW_DEVICES_MAX; i++) {
        spw_write(writer, i == 0 ? "\n  " : ",\n  ");
        put_device(writer, stats, i);
    }
    spw_write(writer, "\n]");
    put_rules(writer, stats);
    put_oom(writer, &stats->oom);
    put_extension = atomic_load(&spw_stats_files.extension);
    if (put_extension != NULL) {
        put_extension(writer);
    }
    spw_write(writer, "}\n");
}

/* False, with errno set, on an error. */
static bool write_all(int fd, struct spw_stats *stats)
{
    struct spw_writer SPW_ROOM *writer = spw_room_take(sizeof(*writer));

    if (writer == NULL) {
        return false;
    }
    writer->fd = fd;
    put_stats(writer, stats);
    spw_write_flush(writer);
    return !writer->failed;
}

/* Like write_all; also closes the file. */
static bool write_to(int fd, struct spw_stats *stats)
{
    bool written = write_all(fd, stats);
    int saved = errno;
    bool closed = close(fd) == 0;

    if (!written) {
        errno = saved;
    }
    return closed && written;
}

/* Writes a nameless file, so that nothing is left if the process is killed, and then gives it the
 * name `ret_temporary`, of FILE_PATH bytes. False, with nothing left, on an error, or if the file
 * system has no nameless files. */
static bool write_nameless(struct spw_stats *stats, const char *path, char *ret_temporary)
{
    int fd = spw_create_nameless(path, 0644);
    bool named;

    if (fd < 0) {
        return false;
    }
    named = write_all(fd, stats) && spw_create_name(fd, path, ret_temporary, FILE_PATH) == 0;
    (void)close(fd);
    return named;
}

/* Gives the finished `temporary` its final name: a new name by link, which only one process can do;
 * a name that this process already has by rename. On a file system without links it gets the plain
 * name, since no process can claim a name there. */
static bool publish(const struct spw_stats *stats, const char *path, const char *temporary)
{
    char SPW_ROOM *with_pid = spw_room_take(FILE_PATH);

    if (with_pid == NULL) {
        return false;
    }
    if (link(temporary, path) == 0) {
        return unlink(temporary) == 0;
    }
    if (errno != EEXIST || spw_stats_path_owner(path) == stats->pid) {
        return rename(temporary, path) == 0;
    }
    snprintf(with_pid, FILE_PATH, "%s.%d", path, stats->pid);
    return rename(temporary, with_pid) == 0;
}

/* Devices and pipes have no temporary name beside them; /dev/stderr may lead to a regular file. */
static bool is_special(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        return false;
    }
    return !S_ISREG(status.st_mode) || strncmp(path, "/dev/std", 8) == 0 ||
           strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* Writes a temporary file and gives it its name. */
static bool write_regular(struct spw_stats *stats, const char *path)
{
    char SPW_ROOM *temporary = spw_room_take(FILE_PATH);
    bool written = temporary != NULL && write_nameless(stats, path, temporary);
    int saved;

    if (!written) {
        int fd = temporary == NULL ? -1 : spw_create_beside(path, 0644, temporary, FILE_PATH);

        if (fd < 0) {
            return false;
        }
        written = write_to(fd, stats);
    }
    if (written && publish(stats, path, temporary)) {
        return true;
    }
    saved = errno;
    unlink(temporary);
    errno = saved;
    return false;
}

/* Writes to a device or pipe in place, otherwise by a temporary file. A link of another user is not
 * followed: it counts as that user's file. */
static bool write_anywhere(struct spw_stats *stats, const char *path)
{
    int fd;

    if (!is_special(path)) {
        return write_regular(stats, path);
    }
    fd = spw_create_open(path, O_WRONLY | O_APPEND | O_NONBLOCK, 0);
    if (fd < 0) {
        return errno == EACCES && write_regular(stats, path);
    }
    return write_to(fd, stats);
}

/* False for a process that allocated no device memory, such as the one that starts the ranks. */
static bool has_used_memory(const struct spw_stats *stats)
{
    for (int i = 0; i < stats->device_count && i < SPW_DEVICES_MAX; i++) {
        const struct spw_counters *counters = &stats->devices[i].counters;

        if (spw_counter_get(&counters->live_peak_bytes) > 0 ||
            spw_counter_get(&counters->passed_allocs) > 0 || spw_counter_get(&counters->ooms) > 0) {
            return true;
        }
    }
    return false;
}

bool spw_stats_write(struct spw_stats *stats)
{
    SPW_UNCANCELLED;
    const char *path = spw_stats_output_path(SPW_STATS_FILE);
    int saved = errno;
    bool written;

    if (path[0] == '\0' || (stats->of_rank && !has_used_memory(stats))) {
        return true;
    }
    written = write_anywhere(stats, path);
    if (!written) {
        spw_log_always("cannot write statistics to %s: %s", path, strerror(errno));
    }
    errno = saved;
    return written;
}
