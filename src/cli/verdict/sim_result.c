#include "cli/verdict/sim_result.h"

#include "cli/launch/run_directory.h"
#include "common/minmax.h"
#include "sim/devices.h"
#include "sim/record.h"
#include "stats/process.h"
#include "stats/stats.h"
#include "system/fd.h"

#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert((int)SPW_CLI_SIM_LACK_DEVICE == (int)SIM_RECORD_DEVICE &&
                  (int)SPW_CLI_SIM_LACK_HOST == (int)SIM_RECORD_HOST,
              "both name the same kinds of memory");
static_assert((int)SPW_DEVICES_MAX >= (int)SIM_RECORD_DEVICES, "a place for every device");

/* ---- names ---- */

static void name_process(const struct sim_record *record, char name[SPW_CLI_SIM_NAME])
{
    char command[SIM_RECORD_COMMAND + 1];
    uint32_t bytes = record->command_bytes;

    memcpy(command, record->command, SIM_RECORD_COMMAND);
    bytes = bytes < SIM_RECORD_COMMAND ? bytes : SIM_RECORD_COMMAND;
    command[bytes] = '\0'; /* the last argument may be cut off */
    spw_stats_process_name_of(command, bytes, name, SPW_CLI_SIM_NAME);
}

/* Copies a function's name without suffixes such as _v2 and _ptsz. */
static void copy_api(char *api, size_t capacity, const char *exported)
{
    snprintf(api, capacity, "%s", exported);
    for (;;) {
        char *suffix = strrchr(api, '_');

        if (suffix == NULL ||
            (strcmp(suffix, "_ptsz") != 0 && strcmp(suffix, "_ptds") != 0 &&
             !(suffix[1] == 'v' && isdigit((unsigned char)suffix[2]) && suffix[3] == '\0'))) {
            return;
        }
        *suffix = '\0';
    }
}

/* ---- one device ---- */

/* Keeps the latest failure, preferably of a request that did not succeed later. */
static void take_later(struct spw_cli_sim_device *device, struct spw_cli_sim_refusal *refusal,
                       const char *api, const char *thread)
{
    const struct spw_cli_sim_refusal *last = &device->last;

    if (refusal->time_ns > 0 &&
        (last->time_ns == 0 || (last->overcome && !refusal->overcome) ||
         (last->overcome == refusal->overcome && refusal->time_ns > last->time_ns))) {
        copy_api(refusal->api, sizeof(refusal->api), api);
        memcpy(refusal->thread, thread, sizeof(refusal->thread));
        device->last = *refusal;
    }
}

static void take_simulated(struct spw_cli_sim_device *device, const struct sim_record_refusal *last)
{
    struct spw_cli_sim_refusal refusal = {
        .number = last->number,
        .bytes = last->bytes,
        .missing_bytes = last->missing_bytes,
        .time_ns = last->time_ns,
        .lack = (enum spw_cli_sim_lack)last->lack,
        .overcome = last->overcome,
        .tid = last->tid,
    };

    take_later(device, &refusal, last->api, last->thread);
}

static void add_simulated_refusal(struct spw_cli_sim_device *device,
                                  const struct sim_record_device *from, enum sim_record_kind kind)
{
    device->refusals += from->refusals[kind];
    device->overcome += from->overcome[kind];
    device->lost += from->refused[kind] - from->overcome[kind];
    take_simulated(device, &from->last[kind]);
    take_simulated(device, &from->lost[kind]);
}

/* If the simulated machine ran out of its one memory, adds this as the last failure. */
static void add_death(struct spw_cli_sim_device *device, const struct sim_record_device *from)
{
    if (from->died_missing_bytes > 0) {
        device->lost++;
        device->last = (struct spw_cli_sim_refusal){.missing_bytes = from->died_missing_bytes,
                                                    .time_ns = UINT64_MAX,
                                                    .lack = SPW_CLI_SIM_LACK_MACHINE};
    }
}

/* Copies the times of the second half of the kernels. */
static void add_half(struct spw_cli_sim_device *device, const struct sim_record_device *from)
{
    uint64_t count = from->mark_count < SIM_RECORD_MARKS ? from->mark_count : SIM_RECORD_MARKS;

    static_assert(SPW_CLI_SIM_HALF > SIM_RECORD_MARKS / 2, "no room for half of the marks");
    if (count >= 2) {
        device->half_count = (unsigned)(count - (count - 1) / 2);
        memcpy(device->half_ns, from->marks_ns + (count - 1) / 2,
               device->half_count * sizeof(*device->half_ns));
    }
}

static void add_record(struct spw_cli_sim_device *device, const struct sim_record_device *from)
{
    uint64_t launches = 0;

    device->index = from->index;
    device->memory_bytes = from->total_bytes;
    device->total_bytes = from->total_bytes;
    device->live_peak_bytes = from->held_peak_bytes;
    device->used_bytes = from->used_bytes;
    device->used_peak_bytes = from->used_peak_bytes;
    device->allocations = from->allocations;
    device->own_peak_bytes = from->own_peak_bytes;
    device->overhead_bytes = from->overhead_bytes;
    device->program_peak_bytes = from->program_peak_bytes;
    device->communicators = from->communicators_peak;
    device->ranks = from->ranks_peak;
    device->nccl_bytes = from->nccl_peak_bytes;
    device->nccl_most_bytes = from->nccl_most_peak_bytes;
    for (int i = 0; i < SPW_LAYOUT_COUNT; i++) {
        device->launches[i] = from->launches[i];
        launches += from->launches[i];
    }
    device->small_reads = from->small_reads;
    device->known_reads = from->known_reads;
    device->engines_asked = from->engines_asked;
    device->engines_guessed = from->engines_guessed;
    device->searches = from->searches;
    device->chosen = from->chosen;
    device->bulk_reads = from->bulk_reads;
    device->bulk_read_bytes = from->bulk_read_bytes;
    add_half(device, from);
    device->step = (struct spw_cli_sim_step){
        .launches = from->step.launches,
        .ns = from->step.ns,
        .host_ns = from->step.host_ns,
        .busy_ns = from->step.busy_ns,
        .sure_ns = from->step.sure_ns,
        .moving_ns = from->step.moving_ns,
    };
    memcpy(device->step.computing_ns, from->step.computing_ns, sizeof(device->step.computing_ns));
    device->link_bytes = from->link_in_bytes + from->link_out_bytes;
    device->one_memory = from->one_memory;
    device->host_side_bytes = from->together_peak_bytes > from->used_peak_bytes
                                  ? from->together_peak_bytes - from->used_peak_bytes
                                  : 0;
    add_death(device, from);
    add_simulated_refusal(device, from, SIM_RECORD_OTHER);
    device->used = from->used_peak_bytes > 0 || launches > 0 || device->refusals > 0 ||
                   device->lost > 0 || from->refusals[SIM_RECORD_CHUNK] > 0;
}

static void take_pools(struct spw_cli_sim_device *device, const struct spw_stats_refused *last,
                       bool overcome)
{
    struct spw_cli_sim_refusal refusal = {
        .number = last->number,
        .bytes = last->bytes,
        .missing_bytes = last->missing_bytes,
        .time_ns = last->time_ns,
        .lack = SPW_CLI_SIM_LACK_DEVICE,
        .overcome = overcome,
        .tid = last->tid,
    };

    take_later(device, &refusal, last->api, last->thread);
}

static void add_pool_refusal(struct spw_cli_sim_device *device, const struct spw_stats_device *from)
{
    const struct spw_stats_refusal *refusal = &from->refusal;

    if (atomic_load(&refusal->count) == 0 || refusal->overcome > refusal->requests) {
        return;
    }
    device->refusals += spw_counter_get(&from->counters.ooms);
    device->overcome += refusal->overcome;
    device->lost += refusal->requests - refusal->overcome;
    take_pools(device, &refusal->last, atomic_load(&refusal->pending_bytes) == 0);
    take_pools(device, &refusal->lost, false);
}

/* Completes a failure of the pool with the driver call that failed just before it on the same
 * thread. If the program itself made the driver call, the missing bytes are taken from the driver's
 * record. If the pool had enough free memory, but the memory was fragmented, the driver's figure is
 * a lower bound. */
static void complete_refusal(struct spw_cli_sim_device *device,
                             const struct sim_record_device *from)
{
    static const uint64_t moment_ns = 100000000;
    const struct sim_record_refusal *chunk = &from->last[SIM_RECORD_CHUNK];
    struct spw_cli_sim_refusal *last = &device->last;

    if (from->refusals[SIM_RECORD_CHUNK] == 0 || last->lack != SPW_CLI_SIM_LACK_DEVICE ||
        chunk->tid != last->tid || last->time_ns - chunk->time_ns > moment_ns) {
        return;
    }
    if (chunk->bytes == last->bytes && strcmp(last->api, chunk->api) == 0) {
        last->missing_bytes = chunk->missing_bytes;
    } else if (last->missing_bytes == 0) {
        last->missing_bytes = chunk->missing_bytes;
        last->at_least = true;
    }
}

/* Adds the memory that a rule placed on the host to the sum of all rules with this name. */
static void add_rule(struct spw_cli_sim_result *result, const char *name, uint64_t bytes)
{
    struct spw_cli_sim_rule *rule = result->rules;
    const struct spw_cli_sim_rule *end = rule + result->rule_count;

    while (rule < end && strcmp(rule->name, name) != 0) {
        rule++;
    }
    if (rule == end && result->rule_count == SPW_ACCOUNTS) {
        return;
    }
    if (rule == end) {
        snprintf(rule->name, sizeof(rule->name), "%s", name);
        result->rule_count++;
    }
    rule->host_peak_bytes += bytes;
}

/* Divides the memory on the host into memory placed by rules of the policy and spilled memory. */
static void add_host(struct spw_cli_sim_result *result, struct spw_cli_sim_device *device,
                     const struct spw_stats *stats, const struct spw_stats_device *from)
{
    uint64_t peak = spw_counter_get(&from->counters.host_peak_bytes), placed = 0;
    bool moved = device->spilled_bytes > device->paused_bytes;

    for (int i = 0; i < SPW_ACCOUNTS && stats->rule_names[i][0] != '\0'; i++) {
        uint64_t bytes = spw_counter_get(&from->rules[i].host_peak);

        if (bytes > 0) {
            add_rule(result, stats->rule_names[i], bytes);
            placed += bytes;
        }
    }
    device->placed_peak_bytes = placed < peak ? placed : peak;
    device->host_peak_bytes = moved || device->paused_bytes == 0 ? peak : device->placed_peak_bytes;
    device->spilled = device->host_peak_bytes > 0 && (moved || device->placed_peak_bytes == 0);
}

/* Adds the pool's statistics, because the driver sees only the pool's chunks, not the allocations
 * in them. */
static void add_pool(struct spw_cli_sim_device *device, const struct spw_stats_device *from)
{
    const struct spw_counters *counters = &from->counters;
    uint64_t limit = spw_counter_get(&counters->limit_bytes);

    if (limit == 0) {
        return; /* the pool never opened the device */
    }
    device->pooled = true;
    device->one_memory |= spw_counter_get(&counters->one_memory_bytes) > 0;
    device->allocations = spw_counter_get(&counters->allocs);
    device->total_bytes = limit < device->total_bytes ? limit : device->total_bytes;
    device->live_peak_bytes = spw_counter_get(&counters->live_peak_bytes);
    device->pool_peak_bytes = spw_counter_get(&counters->committed_peak_bytes);
    device->ordered_peak_bytes = spw_max(spw_counter_get(&counters->async_live_peak_bytes),
                                         spw_counter_get(&counters->async_live_top_bytes));
    device->spilled_bytes = spw_counter_get(&counters->spilled_bytes);
    device->promoted_bytes = spw_counter_get(&counters->promoted_bytes);
    device->step_out_bytes = spw_counter_get(&counters->step_out_bytes);
    device->step_in_bytes = spw_counter_get(&counters->step_in_bytes);
    device->paused_bytes = spw_counter_get(&counters->paused_bytes);
    device->host_limit_bytes = spw_counter_get(&counters->host_limit_bytes);
    device->host_bound = spw_counter_get(&counters->host_bound);
    device->step_ns = spw_counter_get(&counters->step_ns);
    device->step_held_ns = spw_counter_get(&counters->step_held_ns);
    add_pool_refusal(device, from);
}

/* ---- one process ---- */

static const struct sim_record *map_record(const char *path)
{
    const struct sim_record *record = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof(*record)) {
        record = mmap(NULL, sizeof(*record), PROT_READ, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (record == MAP_FAILED) {
        return NULL;
    }
    if (record->magic != SIM_RECORD_MAGIC || record->version != SIM_RECORD_VERSION ||
        record->bytes != sizeof(*record)) {
        munmap((void *)record, sizeof(*record));
        return NULL;
    }
    return record;
}

/* Returns the next process of the result, zeroed. Returns NULL if there is no room for it. */
static struct spw_cli_sim_process *new_process(struct spw_cli_sim_result *result,
                                               const char *folder, const struct spw_stats *stats)
{
    struct spw_cli_sim_process *process = &result->processes[result->count];
    const char *sites = stats != NULL ? strrchr(stats->sites, '/') : NULL;

    if (result->count == SPW_CLI_SIM_PROCESSES) {
        result->left_out++;
        return NULL;
    }
    result->count++;
    memset(process, 0, sizeof(*process));
    process->rank = stats != NULL ? stats->rank : -1;
    process->ranks = stats != NULL ? stats->ranks : 0;
    process->tensors = stats != NULL && strcmp(stats->mode, "tensor") == 0;
    if (sites != NULL) {
        (void)snprintf(process->sites, sizeof(process->sites), "%s%s", folder, sites);
    }
    return process;
}

static void add_process(struct spw_cli_sim_result *result, const char *folder,
                        const struct sim_record *record, const struct spw_stats *stats)
{
    struct spw_cli_sim_process *process = new_process(result, folder, stats);

    if (process == NULL) {
        return;
    }
    process->pid = record->pid;
    process->device_count = record->device_count;
    name_process(record, process->name);
    snprintf(process->runtime, sizeof(process->runtime), "%.*s", SIM_RECORD_PATH - 1,
             record->runtime);
    for (int i = 0; i < process->device_count; i++) {
        struct spw_cli_sim_device *device = &process->devices[i];

        add_record(device, &record->devices[i]);
        if (stats != NULL) {
            add_pool(device, &stats->devices[i]);
        }
        if (device->pooled) {
            add_host(result, device, stats, &stats->devices[i]);
            complete_refusal(device, &record->devices[i]);
        } else {
            add_simulated_refusal(device, &record->devices[i], SIM_RECORD_CHUNK);
        }
        process->used |= device->used;
    }
}

/* Adds a process on this machine's devices, of which only the pool's figures are known. */
static void add_real(const char *folder, const char *name, void *context)
{
    struct spw_cli_sim_result *result = context;
    struct spw_cli_sim_process *process;
    char path[4096];
    struct spw_stats *stats;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    stats = spw_stats_open(path);
    process = stats != NULL ? new_process(result, folder, stats) : NULL;
    for (int i = 0; process != NULL && i < stats->device_count; i++) {
        struct spw_cli_sim_device *device = &process->devices[i];

        device->index = i;
        device->total_bytes = UINT64_MAX;
        add_pool(device, &stats->devices[i]);
        if (device->pooled) {
            add_host(result, device, stats, &stats->devices[i]);
        }
        device->used = device->live_peak_bytes > 0 || device->refusals > 0;
        device->used_peak_bytes = device->pool_peak_bytes;
        process->used |= device->used;
        process->pid = stats->pid;
        process->device_count = i + 1;
    }
    spw_stats_close(stats);
}

/* Counts a record as lost if the record is empty, or if its process left a note that the record is
 * incomplete. */
static void find_problem(struct spw_cli_sim_result *result, const char *path)
{
    char link[4096 + 16], why[sizeof(result->problem)];
    struct stat status;
    ssize_t length;

    snprintf(link, sizeof(link), "%s" SIM_RECORD_PROBLEM, path);
    length = readlink(link, why, sizeof(why) - 1);
    if (length < 0 && (stat(path, &status) != 0 || status.st_size > 0)) {
        return;
    }
    why[length > 0 ? length : 0] = '\0';
    if (result->lost++ == 0) {
        snprintf(result->problem, sizeof(result->problem), "%s", why);
    }
}

/* Reads a record, which is named "sim-PID" in the run directory, and the pool's statistics of the
 * same process, which are named "PID". */
static void read_one(const char *folder, const char *name, void *context)
{
    static const char prefix[] = "sim-";
    const struct sim_record *record;
    struct spw_stats *stats;
    char path[4096];

    if (strncmp(name, prefix, strlen(prefix)) != 0) {
        return;
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    find_problem(context, path);
    record = map_record(path);
    if (record == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name + strlen(prefix));
    stats = spw_stats_open(path);
    add_process(context, folder, record, stats);
    spw_stats_close(stats);
    munmap((void *)record, sizeof(*record));
}

/* ---- devices that processes share ---- */

static void add_parts(struct spw_cli_sim_result *result, const struct sim_devices_process *from)
{
    for (size_t i = 0; i < result->count; i++) {
        struct spw_cli_sim_process *process = &result->processes[i];

        if (process->pid != from->pid) {
            continue;
        }
        for (int k = 0; k < process->device_count; k++) {
            int index = process->devices[k].index;

            if (index >= 0 && index < SPW_DEVICES_MAX) {
                process->devices[k].shared_peak_bytes = from->at_peak[index];
            }
        }
        return; /* other records of this pid belong to programs that ran before an exec */
    }
}

/* Reads the file "devices". Called after the records of the processes are read. */
static void read_devices(const char *folder, const char *name, void *context)
{
    struct spw_cli_sim_result *result = context;
    struct sim_devices *devices;
    char path[4096];
    int fd;

    if (strcmp(name, "devices") != 0) {
        return;
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = spw_fd_open_regular(path);
    devices = calloc(1, sizeof(*devices));
    if (fd >= 0 && devices != NULL && spw_fd_read_at(fd, devices, sizeof(*devices), 0) &&
        devices->magic == SIM_DEVICES_MAGIC && devices->version == SIM_DEVICES_VERSION &&
        devices->bytes == sizeof(*devices)) {
        memcpy(result->shared_peaks, devices->peak, sizeof(result->shared_peaks));
        for (size_t i = 0; i < devices->process_count && i < SIM_DEVICES_PROCESSES; i++) {
            add_parts(result, &devices->processes[i]);
        }
    }
    free(devices);
    if (fd >= 0) {
        close(fd);
    }
}

/* ---- all devices ---- */

const struct spw_cli_sim_process *spw_cli_sim_process_of(const struct spw_cli_sim_result *result,
                                                         const struct spw_cli_sim_device *device,
                                                         int *ret_ordinal)
{
    size_t bytes = (size_t)((const char *)device - (const char *)result->processes);
    const struct spw_cli_sim_process *process = &result->processes[bytes / sizeof(*process)];

    *ret_ordinal = (int)(device - process->devices);
    return process;
}

const struct spw_cli_sim_device *spw_cli_sim_next(const struct spw_cli_sim_result *result,
                                                  const struct spw_cli_sim_device *device)
{
    size_t i = 0;
    int ordinal = 0;

    if (device != NULL) {
        i = (size_t)(spw_cli_sim_process_of(result, device, &ordinal) - result->processes);
        ordinal++;
    }
    for (; i < result->count; i++, ordinal = 0) {
        if (ordinal < result->processes[i].device_count) {
            return &result->processes[i].devices[ordinal];
        }
    }
    return NULL;
}

size_t spw_cli_sim_result_sharers(const struct spw_cli_sim_result *result, int index)
{
    const struct spw_cli_sim_device *device = NULL;
    size_t count = 0;

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        count += device->index == index && device->shared_peak_bytes > 0;
    }
    return count;
}

/* ---- all ---- */

void spw_cli_sim_result_read(bool real, struct spw_cli_sim_result *ret_result)
{
    const struct spw_cli_sim_device *device = NULL;

    *ret_result = (struct spw_cli_sim_result){
        .processes = calloc(SPW_CLI_SIM_PROCESSES, sizeof(struct spw_cli_sim_process)),
        .real = real,
    };
    if (ret_result->processes != NULL && real) {
        spw_cli_run_directory_each(add_real, ret_result);
    } else if (ret_result->processes != NULL) {
        spw_cli_run_directory_each(read_one, ret_result);
        spw_cli_run_directory_each(read_devices, ret_result);
    }
    while ((device = spw_cli_sim_next(ret_result, device)) != NULL) {
        ret_result->lost_requests += device->lost;
        ret_result->overcome += device->overcome;
        ret_result->host_peak_bytes += device->host_peak_bytes;
        ret_result->spilled |= device->spilled;
    }
}

void spw_cli_sim_result_fini(struct spw_cli_sim_result *result)
{
    free(result->processes);
    *result = (struct spw_cli_sim_result){0};
}

const struct spw_cli_sim_device *spw_cli_sim_result_failure(const struct spw_cli_sim_result *result)
{
    const struct spw_cli_sim_device *device = NULL, *latest = NULL;

    while ((device = spw_cli_sim_next(result, device)) != NULL) {
        if (device->lost > 0 && !device->last.overcome &&
            (latest == NULL || latest->last.time_ns < device->last.time_ns)) {
            latest = device;
        }
    }
    return latest;
}

enum spw_cli_sim_outcome spw_cli_sim_result_outcome(const struct spw_cli_sim_result *result,
                                                    int code)
{
    bool used = false, refused;

    for (size_t i = 0; i < result->count; i++) {
        used |= result->processes[i].used;
    }
    if (result->lost > 0) {
        return SPW_CLI_SIM_UNRECORDED;
    }
    if (!used) {
        return SPW_CLI_SIM_UNUSED;
    }
    refused = spw_cli_sim_result_failure(result) != NULL;
    if (code != 0) {
        return refused ? SPW_CLI_SIM_DOES_NOT_FIT : SPW_CLI_SIM_FAILED;
    }
    if (refused) {
        return SPW_CLI_SIM_CONTINUED;
    }
    return result->spilled ? SPW_CLI_SIM_SPILLS : SPW_CLI_SIM_FITS;
}
