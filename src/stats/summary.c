#include "stats/summary.h"

#include "common/host_bound.h"
#include "common/minmax.h"
#include "common/size.h"
#include "system/fd.h"
#include "system/room.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* When moves hold submissions back for a larger part of a step, another way is named. */
enum { HELD_SHARE = 8 };

/* The speed of PCI Express 5 x16 in each direction, in GB/s (bytes in a nanosecond). */
enum { LINK_SPEED = 55 };

/* No floating point: the program's locale must not change the output. */

static uint64_t get(const _Atomic uint64_t *counter)
{
    return spw_counter_get(counter);
}

static void put_line(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put_line(int fd, const char *format, ...)
{
    enum { LINE_BYTES = 2048 };
    char SPW_ROOM *line = spw_room_take(LINE_BYTES);
    va_list arguments;

    if (line == NULL) {
        return;
    }
    va_start(arguments, format);
    (void)spw_fd_write_line(fd, line, LINE_BYTES, format, arguments);
    va_end(arguments);
}

static bool was_used(const struct spw_stats_device *device)
{
    const struct spw_counters *counters = &device->counters;

    return get(&counters->allocs) > 0 || get(&counters->passed_allocs) > 0 ||
           get(&counters->live_peak_bytes) > 0 || get(&counters->ooms) > 0;
}

static uint64_t total_driver_calls(const struct spw_stats_device *device)
{
    uint64_t total = 0;

    for (int i = 0; i < SPW_STATS_CALLS; i++) {
        total += get(&device->driver_calls[i]);
    }
    return total;
}

/* `who` names the process if no line above does. */
static void put_peaks(int fd, const char *who, int ordinal, const struct spw_counters *counters)
{
    uint64_t live = get(&counters->live_peak_bytes);
    uint64_t committed = get(&counters->committed_peak_bytes);
    uint64_t host = get(&counters->host_peak_bytes);
    char live_text[SPW_SIZE_TEXT];
    char committed_text[SPW_SIZE_TEXT];
    char limit_text[SPW_SIZE_TEXT];
    char host_text[SPW_SIZE_TEXT];
    char ratio[64] = "";

    if (committed > 0 && host == 0) {
        uint64_t permille = live * 1000 / committed;

        snprintf(ratio, sizeof(ratio), " (%" PRIu64 ".%" PRIu64 " %% used)", permille / 10,
                 permille % 10);
    }
    put_line(fd, "spillway: %sdevice %d: peak live %s, peak committed %s%s; limit %s%s%s", who,
             ordinal, spw_size_text(live, live_text), spw_size_text(committed, committed_text),
             ratio, spw_size_text(get(&counters->limit_bytes), limit_text),
             host > 0 ? "; peak on the host " : "", host > 0 ? spw_size_text(host, host_text) : "");
}

static void put_calls(int fd, int ordinal, const struct spw_stats_device *device)
{
    const struct spw_counters *counters = &device->counters;

    put_line(fd,
             "spillway: device %d: %" PRIu64 " allocations, %" PRIu64 " frees, %" PRIu64
             " granules remapped, %" PRIu64 " waits for the device, %" PRIu64
             " driver calls by spillway",
             ordinal, get(&counters->allocs), get(&counters->frees), get(&counters->steals),
             get(&counters->host_waits), total_driver_calls(device));
}

/* The ending of a noun. */
static const char *s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Adds "N what" to a list in `text`. */
static void append_reason(char *text, size_t capacity, size_t *used, uint64_t count,
                          const char *what)
{
    int length;

    if (count == 0) {
        return;
    }
    length = snprintf(text + *used, capacity - *used, "%s%" PRIu64 " %s", *used > 0 ? ", " : "",
                      count, what);
    if (length > 0 && (size_t)length < capacity - *used) {
        *used += (size_t)length;
    }
}

static void put_passed(int fd, int ordinal, const struct spw_counters *counters)
{
    uint64_t passed = get(&counters->passed_allocs);
    uint64_t captured = get(&counters->captured_allocs);
    uint64_t foreign = get(&counters->foreign_pool_allocs);
    uint64_t failed = get(&counters->failed_open);
    uint64_t shared = get(&counters->shared_allocs);
    uint64_t named = captured + foreign + failed + shared;
    char reasons[512] = "";
    size_t used = 0;

    if (passed == 0 && named == 0) {
        return;
    }
    append_reason(reasons, sizeof(reasons), &used, captured, "during graph capture");
    append_reason(reasons, sizeof(reasons), &used, foreign, "from the program's memory pools");
    append_reason(reasons, sizeof(reasons), &used, shared,
                  "of libraries that share memory with other processes");
    append_reason(reasons, sizeof(reasons), &used, failed, "after an error in the pool");
    append_reason(reasons, sizeof(reasons), &used, passed > named ? passed - named : 0,
                  "because of the mode");
    put_line(fd, "spillway: device %d: %" PRIu64 " allocation%s left to the driver: %s", ordinal,
             passed, s(passed), reasons);
}

/* Memory that went to the host. */
static void put_spill(int fd, int ordinal, const struct spw_counters *counters)
{
    char spilled[SPW_SIZE_TEXT], placed[SPW_SIZE_TEXT], promoted[SPW_SIZE_TEXT];
    char peak[SPW_SIZE_TEXT], limit[SPW_SIZE_TEXT];

    if (get(&counters->spilled_bytes) == 0) {
        return;
    }
    put_line(fd,
             "spillway: device %d: %s went to the host (%s of it new blocks), %s moved back; host "
             "memory peak %s, limit %s (%s)",
             ordinal, spw_size_text(get(&counters->spilled_bytes), spilled),
             spw_size_text(get(&counters->placed_bytes), placed),
             spw_size_text(get(&counters->promoted_bytes), promoted),
             spw_size_text(get(&counters->host_peak_bytes), peak),
             spw_size_text(get(&counters->host_limit_bytes), limit),
             spw_host_bound_text(get(&counters->host_bound)));
}

/* If a step's bytes need the link for more than one and a half times as long as the step takes
 * without moves, then no order of moves makes the step short. Where the step was shorter than that,
 * the link is faster than is assumed here. */
static void put_bound(int fd, int ordinal, uint64_t step, uint64_t held, uint64_t bytes)
{
    uint64_t link = bytes / LINK_SPEED, without = step > held ? step - held : 0;

    if (link <= without + without / 2 || link > step) {
        return;
    }
    put_line(fd,
             "spillway: device %d: without moves such a step takes at most %" PRIu64 ".%" PRIu64
             " ms, and its bytes need a link of %d GB/s for %" PRIu64 ".%" PRIu64
             " ms; a smaller batch costs less, and so can recomputing (spillway run --fit)",
             ordinal, without / 1000000, without / 100000 % 10, LINK_SPEED, link / 1000000,
             link / 100000 % 10);
}

/* What moves cost a step. */
static void put_step(int fd, int ordinal, const struct spw_stats *stats)
{
    const struct spw_counters *counters = &stats->devices[ordinal].counters;
    char out[SPW_SIZE_TEXT], in[SPW_SIZE_TEXT];
    uint64_t step = get(&counters->step_ns), held = get(&counters->step_held_ns);
    uint64_t out_bytes = get(&counters->step_out_bytes), in_bytes = get(&counters->step_in_bytes);

    if (step == 0) {
        return;
    }
    put_line(fd,
             "spillway: device %d: a step took %" PRIu64 ".%" PRIu64
             " ms when last measured; in it %s moved to the host, %s moved back, and GPU work was "
             "held back %" PRIu64 " ms",
             ordinal, step / 1000000, step / 100000 % 10, spw_size_text(out_bytes, out),
             spw_size_text(in_bytes, in), held / 1000000);
    put_bound(fd, ordinal, step, held, spw_max(out_bytes, in_bytes));
    if (held > step / HELD_SHARE && stats->safe) {
        put_line(fd,
                 "spillway: device %d: with SPILLWAY_OVERLAP=guarded memory moves while kernels "
                 "run; the program may end if a kernel uses moved memory through a pointer that "
                 "is not among its arguments (docs/guide/spilling.md)",
                 ordinal);
    }
}

/* The time that moves took. */
static void put_moves(int fd, int ordinal, const struct spw_counters *counters)
{
    if (get(&counters->spilled_bytes) == 0) {
        return;
    }
    put_line(fd,
             "spillway: device %d: %" PRIu64 " moves, %" PRIu64 " abandoned, %" PRIu64
             " copied again; allocations waited %" PRIu64 " ms for moves, GPU work was held back "
             "%" PRIu64 " ms",
             ordinal, get(&counters->moves), get(&counters->abandoned_moves),
             get(&counters->second_copies), get(&counters->stall_ns) / 1000000,
             get(&counters->closed_ns) / 1000000);
}

/* Reasons why blocks did not move, or moves took longer. */
static void put_hindrances(int fd, int ordinal, const struct spw_counters *counters)
{
    if (get(&counters->unseen_refusals) > 0) {
        put_line(fd,
                 "spillway: device %d: nothing moved %" PRIu64
                 " time%s, because the program has loaded a library whose GPU work spillway does "
                 "not see (OptiX, NVENC, NVDEC, NVOFA)",
                 ordinal, get(&counters->unseen_refusals), s(get(&counters->unseen_refusals)));
    }
}

static void put_trouble(int fd, enum spw_summary extent, int ordinal,
                        const struct spw_counters *counters)
{
    char text[512] = "";
    size_t used = 0;

    append_reason(text, sizeof(text), &used, get(&counters->ooms),
                  get(&counters->ooms) == 1 ? "allocation refused as out of memory"
                                            : "allocations refused as out of memory");
    if (extent == SPW_SUMMARY_ON) {
        append_reason(text, sizeof(text), &used, get(&counters->forward_retries),
                      get(&counters->forward_retries) == 1
                          ? "call repeated after free memory was given back"
                          : "calls repeated after free memory was given back");
    }
    append_reason(text, sizeof(text), &used, get(&counters->runtime_missed),
                  get(&counters->runtime_missed) == 1
                      ? "runtime call that was not intercepted at the driver"
                      : "runtime calls that were not intercepted at the driver");
    if (used > 0) {
        put_line(fd, "spillway: device %d: %s", ordinal, text);
    }
}

/* The effect of each rule of the policy on a device. Rules without effect are only named. */
static void put_rules(int fd, int ordinal, const struct spw_stats *stats)
{
    const struct spw_stats_device *device = &stats->devices[ordinal];
    char peak[SPW_SIZE_TEXT], host[SPW_SIZE_TEXT], idle[1024] = "", more[160];
    size_t used = 0;

    for (int i = 0; i < SPW_ACCOUNTS && stats->rule_names[i][0] != '\0'; i++) {
        const struct spw_account *tally = &device->rules[i];
        size_t length = 0;

        if (get(&tally->allocs) + get(&tally->refused) == 0) {
            int added = snprintf(idle + used, sizeof(idle) - used, "%s%s", used > 0 ? ", " : "",
                                 stats->rule_names[i]);

            used += added > 0 && (size_t)added < sizeof(idle) - used ? (size_t)added : 0;
            continue;
        }
        more[0] = '\0';
        append_reason(more, sizeof(more), &length, get(&tally->spilled) >> 20,
                      "MiB moved to the host");
        append_reason(more, sizeof(more), &length, get(&tally->refused), "refused");
        append_reason(more, sizeof(more), &length, get(&tally->unmet), "not placed as asked");
        put_line(fd,
                 "spillway: device %d: rule %s decided on %" PRIu64
                 " allocation%s, peak %s, host peak %s%s%s",
                 ordinal, stats->rule_names[i], get(&tally->allocs), s(get(&tally->allocs)),
                 spw_size_text(get(&tally->live_peak), peak),
                 spw_size_text(get(&tally->host_peak), host), length > 0 ? "; " : "", more);
    }
    if (used > 0) {
        put_line(fd, "spillway: device %d: rules that decided on no allocation: %s", ordinal, idle);
    }
}

/* Names the process, for a line that stands alone: "python train.py (pid 7, rank 0): ". */
static void name_process(const struct spw_stats *stats, char *who, size_t capacity)
{
    char rank[32] = "";

    if (stats->rank >= 0) {
        snprintf(rank, sizeof(rank), ", rank %" PRId64, stats->rank);
    }
    snprintf(who, capacity, "%s (pid %d%s): ", stats->process, stats->pid, rank);
}

/* Writes the lines of one device. In a short summary only a job's first rank writes the peaks. */
static void put_device(const struct spw_stats *stats, enum spw_summary extent, int fd, int ordinal)
{
    const struct spw_stats_device *device = &stats->devices[ordinal];
    const struct spw_counters *counters = &device->counters;
    bool peaks = extent == SPW_SUMMARY_ON || (extent == SPW_SUMMARY_SHORT && stats->rank <= 0);
    char SPW_ROOM *who = spw_room_take(SPW_STATS_PATH + 64);

    if (who == NULL) {
        return;
    }
    if (extent == SPW_SUMMARY_SHORT) {
        name_process(stats, who, SPW_STATS_PATH + 64);
    }
    if (peaks) {
        put_peaks(fd, who, ordinal, counters);
    }
    if (extent == SPW_SUMMARY_ON) {
        put_calls(fd, ordinal, device);
    }
    if (peaks) {
        put_spill(fd, ordinal, counters);
        put_step(fd, ordinal, stats);
    }
    if (extent == SPW_SUMMARY_ON) {
        put_moves(fd, ordinal, counters);
    }
    put_hindrances(fd, ordinal, counters);
    put_rules(fd, ordinal, stats);
    if (extent == SPW_SUMMARY_ON || get(&counters->failed_open) > 0) {
        put_passed(fd, ordinal, counters);
    }
    put_trouble(fd, extent, ordinal, counters);
}

/* A short summary has the mode only after an out of memory, since the mode may be the reason. */
static bool says_mode(const struct spw_stats *stats, enum spw_summary extent)
{
    bool refused = false;

    for (int i = 0; i < stats->device_count && i < SPW_DEVICES_MAX; i++) {
        refused |= get(&stats->devices[i].counters.ooms) > 0;
    }
    return refused || extent == SPW_SUMMARY_ON;
}

void spw_stats_summary(const struct spw_stats *stats, enum spw_summary extent, int fd)
{
    bool headed = !says_mode(stats, extent);

    for (int i = 0; i < stats->device_count && i < SPW_DEVICES_MAX; i++) {
        if (extent == SPW_SUMMARY_OFF || !was_used(&stats->devices[i])) {
            continue;
        }
        if (!headed) {
            put_line(fd, "spillway: %s (pid %d): mode %s (%s)", stats->process, stats->pid,
                     stats->mode, stats->why);
            headed = true;
        }
        put_device(stats, extent, fd, i);
    }
}
