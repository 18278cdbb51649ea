/* `spillway report`: a recording as a few lines for people, or as JSON. */
#include "cli/report/report.h"

#include "callsite/label.h"
#include "cli/console/messages.h"
#include "cli/report/categories.h"
#include "cli/report/growth.h"
#include "record/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNITS_IN_MS = 1000000 / SPW_RECORD_UNIT_NS };

/* A time as "3.204 s". */
static const char *seconds(uint64_t time, char text[32])
{
    uint64_t ms = time / UNITS_IN_MS;

    snprintf(text, 32, "%" PRIu64 ".%03" PRIu64 " s", ms / 1000, ms % 1000);
    return text;
}

static uint64_t get(const _Atomic uint64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

/* ---- text ---- */

static const char *s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void put_head(struct spw_cli_report *report)
{
    const struct spw_record_header *header = &report->events.blocks.header;
    const struct spw_cli_state *state = &report->state;
    char time[32];

    spw_cli_report_put(report, "%s (pid %d",
                       state->about[0][0] != '\0' ? state->about[0] : "a program", header->pid);
    if (header->rank >= 0) {
        spw_cli_report_put(report, ", rank %" PRId64, header->rank);
    }
    spw_cli_report_put(report, ") on %s, mode %s: %s, %" PRIu64 " events",
                       state->about[2][0] != '\0' ? state->about[2] : "?",
                       state->about[1][0] != '\0' ? state->about[1] : "?",
                       seconds(state->time, time), state->events);
    if (state->steps > 0) {
        spw_cli_report_put(report, ", %" PRIu64 " marked step%s", state->steps, s(state->steps));
    }
    spw_cli_report_put(report, "\n");
}

static void put_table(struct spw_cli_report *report, const struct spw_cli_device *device)
{
    char label[SPW_CALLSITE_LABEL];
    struct spw_cli_ranked *ranked;
    uint64_t rest = 0;
    size_t count;

    ranked = spw_cli_report_rank(device, spw_cli_state_at_peak, &count);
    if (ranked == NULL || count == 0) {
        free(ranked);
        return;
    }
    spw_cli_report_put(report, "  %12s  %7s  %9s  %s\n", "bytes", "share", "allocs",
                       "held at the peak by");
    for (size_t i = 0; i < count; i++) {
        if (i >= report->top) {
            rest += ranked[i].bytes;
            continue;
        }
        spw_cli_recorded_sites_label(ranked[i].site, label);
        spw_cli_report_put(report, "  %12s  %s  %9" PRIu64 "  %s\n", spw_cli_size(ranked[i].bytes),
                           spw_cli_share(ranked[i].bytes, device->live_peak),
                           device->held[ranked[i].site].allocs, label);
    }
    if (count > report->top) {
        spw_cli_report_put(report, "  %12s  in %zu more (--top %zu shows them)\n",
                           spw_cli_size(rest), count - report->top, count);
    }
    free(ranked);
}

static void put_moves(struct spw_cli_report *report, const struct spw_cli_device *device)
{
    char time[32];
    uint64_t spilled = device->gauges[SPW_RECORD_GAUGE_spilled_bytes];
    uint64_t promoted = device->gauges[SPW_RECORD_GAUGE_promoted_bytes];

    if (spilled > 0 || device->moves > 0) {
        spw_cli_report_put(
            report,
            "  spilled: %s to the host, %s back, in %" PRIu64 " move%s; at most %s there; work was "
            "held back for %s\n",
            spw_cli_size(spilled), spw_cli_size(promoted), device->moves, s(device->moves),
            spw_cli_size(device->host_peak),
            seconds(device->gauges[SPW_RECORD_GAUGE_closed_ns] / SPW_RECORD_UNIT_NS, time));
    }
    if (device->gauges[SPW_RECORD_GAUGE_steals] > 0) {
        spw_cli_report_put(report, "  stolen: %" PRIu64 " granules of free memory\n",
                           device->gauges[SPW_RECORD_GAUGE_steals]);
    }
    if (device->gauges[SPW_RECORD_GAUGE_driver_calls] > 0) {
        spw_cli_report_put(
            report, "  driver: %" PRIu64 " calls of spillway took %s\n",
            device->gauges[SPW_RECORD_GAUGE_driver_calls],
            seconds(device->gauges[SPW_RECORD_GAUGE_driver_ns] / SPW_RECORD_UNIT_NS, time));
    }
}

static void put_oom(struct spw_cli_report *report, const struct spw_cli_device *device)
{
    const struct spw_cli_event *oom = &device->first_oom;
    char time[32], label[SPW_CALLSITE_LABEL];

    if (device->ooms == 0) {
        return;
    }
    spw_cli_recorded_sites_label(spw_cli_recorded_sites_number(report->state.sites, oom->number),
                                 label);
    spw_cli_report_put(report, "  out of memory: %" PRIu64 " time%s, first after %s: %s for %s",
                       device->ooms, s(device->ooms), seconds(oom->time, time),
                       spw_cli_size(oom->bytes), label);
    if (oom->missing > 0) {
        spw_cli_report_put(report, ", %s were missing", spw_cli_size(oom->missing));
    }
    spw_cli_report_put(report, "\n");
}

static const struct spw_cli_amounts *compared;

/* Orders categories by bytes, the largest first, then by number. */
static int compare_categories(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    uint64_t of_a = compared->by[a], of_b = compared->by[b];

    return of_a != of_b ? (of_a < of_b ? 1 : -1) : a - b;
}

/* Writes the categories of the memory at the peak, and always the unknown share. */
static void put_categories(struct spw_cli_report *report, int ordinal)
{
    const struct spw_cli_amounts *held = &report->categories->at_peak[ordinal];
    int order[SPW_CLI_UNKNOWN];

    if (held->live == 0) {
        return;
    }
    for (int i = 0; i < SPW_CLI_UNKNOWN; i++) {
        order[i] = i;
    }
    compared = held;
    qsort(order, SPW_CLI_UNKNOWN, sizeof(*order), compare_categories);
    spw_cli_report_put(report, "  for: ");
    for (int i = 0; i < SPW_CLI_UNKNOWN && held->by[order[i]] > 0; i++) {
        spw_cli_report_put(report, "%s %s, ",
                           spw_cli_category_name((enum spw_cli_category)order[i]),
                           spw_cli_size(held->by[order[i]]));
    }
    spw_cli_report_put(report, "unknown %s (%.1f %%)\n", spw_cli_size(held->by[SPW_CLI_UNKNOWN]),
                       (double)held->by[SPW_CLI_UNKNOWN] * 100 / (double)held->live);
}

static void put_growth(struct spw_cli_report *report, int ordinal)
{
    const struct spw_cli_device *device = &report->state.devices[ordinal];
    const struct spw_cli_growth *growth = report->categories->growth;
    char label[SPW_CALLSITE_LABEL];
    uint64_t bytes = spw_cli_growth_of_device(growth, ordinal), most = 0;
    uint32_t largest = 0;

    if (bytes == 0) {
        return;
    }
    for (uint32_t site = 0; site < device->held_count; site++) {
        uint64_t by = spw_cli_growth_of_site(growth, ordinal, site);

        if (by > most) {
            most = by;
            largest = site;
        }
    }
    spw_cli_report_put(report, "  grows: by %s a step", spw_cli_size(bytes));
    if (most > 0) {
        spw_cli_recorded_sites_label(largest, label);
        spw_cli_report_put(report, ", most by %s: %s", label, spw_cli_size(most));
    }
    spw_cli_report_put(report, "\n");
}

static void put_device(struct spw_cli_report *report, int ordinal)
{
    const struct spw_cli_device *device = &report->state.devices[ordinal];
    char time[32];

    spw_cli_report_put(report, "device %d: peak %s after %s; %s at the end", ordinal,
                       spw_cli_size(device->live_peak), seconds(device->peak_time, time),
                       spw_cli_size(device->live));
    if (device->committed_peak > 0) {
        spw_cli_report_put(report, "; at most %s committed of %s",
                           spw_cli_size(device->committed_peak),
                           spw_cli_size(device->gauges[SPW_RECORD_GAUGE_limit_bytes]));
    }
    spw_cli_report_put(report, "\n");
    put_categories(report, ordinal);
    put_table(report, device);
    put_growth(report, ordinal);
    put_moves(report, device);
    put_oom(report, device);
}

static void put_marks(struct spw_cli_report *report)
{
    const struct spw_cli_marks *marks = &report->state.marks;
    int devices = spw_cli_state_devices(&report->state);
    char time[32];

    if (marks->count > 0) {
        spw_cli_report_put(report, "marked parts\n  %8s  %12s  %12s  %s\n", "times", "time", "peak",
                           "part");
    }
    for (unsigned i = 0; i < marks->count; i++) {
        const struct spw_cli_mark *mark = &marks->list[i];

        spw_cli_report_put(report, "  %8" PRIu64 "  %12s  %12s  %s", mark->count,
                           seconds(spw_cli_mark_time(mark, report->state.time), time),
                           spw_cli_size(mark->peak[0]), mark->name);
        for (int device = 1; device < devices; device++) {
            spw_cli_report_put(report, "%s device %d: %s", device == 1 ? ";" : ",", device,
                               spw_cli_size(mark->peak[device]));
        }
        spw_cli_report_put(report, "%s\n", mark->open > 0 ? " (not ended)" : "");
    }
    if (marks->lost > 0) {
        spw_cli_report_put(report,
                           "  not counted: %" PRIu64 " beginnings of parts with other names\n",
                           marks->lost);
    }
}

/* Writes which parts of the run are missing from the recording or could not be read. */
static void put_gaps(struct spw_cli_report *report)
{
    const struct spw_record_header *header = &report->events.blocks.header;
    const struct spw_record_lost *lost = &header->lost;
    char time[32];

    if (get(&lost->events) > 0) {
        spw_cli_report_put(report,
                           "lost: %" PRIu64 " events from %s on (%" PRIu64
                           " allocations of %s, %" PRIu64 " frees): %s\n",
                           get(&lost->events), seconds(get(&lost->since), time), get(&lost->allocs),
                           spw_cli_size(get(&lost->alloc_bytes)), get(&lost->frees),
                           atomic_load(&header->loss) == SPW_RECORD_LOSS_DISK
                               ? "the file system was full"
                               : "the file was full (--record-size)");
        for (int i = 0; i < SPW_DEVICES_MAX; i++) {
            if (get(&header->live_peak[i]) > report->state.devices[i].live_peak) {
                spw_cli_report_put(report, "lost: with them the peak of device %d is %s\n", i,
                                   spw_cli_size(get(&header->live_peak[i])));
            }
        }
    }
    if (get(&header->lost_marks) > 0) {
        spw_cli_report_put(report,
                           "lost: %" PRIu64
                           " marks of parts and steps, since marks may take 1/%d of the file\n",
                           get(&header->lost_marks), SPW_RECORD_MARK_SHARE);
    }
    if (report->problem[0] != '\0') {
        spw_cli_report_put(report, "damaged: nothing was read beyond this: %s\n", report->problem);
    } else if (atomic_load(&header->complete) == 0) {
        spw_cli_report_put(
            report, "the program was killed, or is still running: the recording has no end\n");
    }
    if (report->state.unknown_frees > 0) {
        spw_cli_report_put(report,
                           "not in the recording: the allocations of %" PRIu64 " freed block%s\n",
                           report->state.unknown_frees, s(report->state.unknown_frees));
    }
}

void spw_cli_report_summary(struct spw_cli_report *report)
{
    int devices = spw_cli_state_devices(&report->state);

    put_head(report);
    for (int i = 0; i < devices; i++) {
        if (report->state.devices[i].held != NULL) {
            put_device(report, i);
        }
    }
    if (devices == 0 && report->problem[0] == '\0') {
        spw_cli_report_put(report, "no memory was allocated\n");
    }
    put_marks(report);
    put_gaps(report);
}

/* ---- JSON ---- */

static void json_frames(struct spw_cli_report *report, uint32_t site)
{
    static struct spw_cli_frame frames[SPW_CLI_FRAMES];
    unsigned count = spw_cli_recorded_sites_frames(site, SPW_CLI_SHOWN_NATIVE, frames);
    struct spw_writer *out = &report->out;

    spw_write(out, ", \"frames\": [");
    for (unsigned i = 0; i < count; i++) {
        spw_write(out, i == 0 ? "{\"function\": " : ", {\"function\": ");
        spw_write_string(out, frames[i].name);
        spw_write_text(out, frames[i].native ? "library" : "file", frames[i].file);
        if (!frames[i].native) {
            spw_write_figure(out, "line", frames[i].line);
        }
        spw_write(out, "}");
    }
    spw_write(out, "]");
}

static void json_sites(struct spw_cli_report *report, const struct spw_cli_device *device,
                       int ordinal)
{
    struct spw_writer *out = &report->out;
    char label[SPW_CALLSITE_LABEL];
    struct spw_cli_ranked *ranked;
    size_t count;

    ranked = spw_cli_report_rank(device, spw_cli_report_total, &count);
    spw_write_key(out, "sites");
    spw_write(out, "[");
    for (size_t i = 0; ranked != NULL && i < count; i++) {
        const struct spw_cli_held *held = &device->held[ranked[i].site];

        spw_cli_recorded_sites_label(ranked[i].site, label);
        spw_write(out, i == 0 ? "\n    {\"label\": " : ",\n    {\"label\": ");
        spw_write_string(out, label);
        spw_write_text(out, "api", spw_cli_recorded_sites_api(ranked[i].site));
        spw_write_figure(out, "device_peak_bytes", spw_cli_state_at_peak(device, ranked[i].site));
        spw_write_figure(out, "peak_bytes", held->peak);
        spw_write_figure(out, "live_bytes", held->live);
        spw_write_figure(out, "total_bytes", held->total);
        spw_write_figure(out, "allocs", held->allocs);
        spw_write_figure(out, "frees", held->frees);
        spw_write_figure(
            out, "growth_bytes_per_step",
            spw_cli_growth_of_site(report->categories->growth, ordinal, ranked[i].site));
        json_frames(report, ranked[i].site);
        spw_write(out, "}");
    }
    spw_write(out, "]");
    free(ranked);
}

static void json_amounts(struct spw_writer *out, const char *key,
                         const struct spw_cli_amounts *held)
{
    spw_write_key(out, key);
    for (int i = 0; i < SPW_CLI_CATEGORIES; i++) {
        spw_write(out, i == 0 ? "{\"" : ", \"");
        spw_write(out, spw_cli_category_key((enum spw_cli_category)i));
        spw_write(out, "\": ");
        spw_write_number(out, held->by[i]);
    }
    spw_write(out, "}");
}

static void json_steps(struct spw_cli_report *report, int ordinal)
{
    const struct spw_cli_categories *categories = report->categories;
    struct spw_writer *out = &report->out;

    spw_write_key(out, "steps");
    spw_write(out, "[");
    for (size_t i = 0; categories->rows[ordinal] != NULL && i < categories->row_count; i++) {
        const struct spw_cli_step_row *row = &categories->rows[ordinal][i];

        spw_write(out, i == 0 ? "\n    {\"number\": " : ",\n    {\"number\": ");
        spw_write_number(out, row->number);
        spw_write_figure(out, "end_ns", row->time * SPW_RECORD_UNIT_NS);
        spw_write_figure(out, "live_bytes", row->held.live);
        json_amounts(out, "categories", &row->held);
        spw_write(out, "}");
    }
    spw_write(out, "]");
}

static void json_device(struct spw_cli_report *report, int ordinal)
{
    static const char *const names[] = {
#define SPW_RECORD_GAUGE(name) #name,
#include "record/gauges.def"
    };
    const struct spw_cli_device *device = &report->state.devices[ordinal];
    struct spw_writer *out = &report->out;

    spw_write(out, "{\"ordinal\": ");
    spw_write_number(out, (uint64_t)ordinal);
    spw_write_figure(out, "live_peak_bytes", device->live_peak);
    spw_write_figure(out, "peak_ns", device->peak_time * SPW_RECORD_UNIT_NS);
    spw_write_figure(out, "live_bytes", device->live);
    spw_write_figure(out, "allocs", device->pool_allocs);
    spw_write_figure(out, "frees", device->pool_frees);
    spw_write_figure(out, "other_allocs", device->allocs - device->pool_allocs);
    spw_write_figure(out, "other_frees", device->frees - device->pool_frees);
    spw_write_figure(out, "ooms", device->ooms);
    spw_write_figure(out, "committed_peak_bytes", device->committed_peak);
    spw_write_figure(out, "host_peak_bytes", device->host_peak);
    for (unsigned i = 0; i < SPW_RECORD_GAUGE_COUNT; i++) {
        spw_write_figure(out, names[i], device->gauges[i]);
    }
    json_amounts(out, "categories_at_peak", &report->categories->at_peak[ordinal]);
    json_amounts(out, "categories_peak", &report->categories->most[ordinal]);
    spw_write_figure(out, "growth_bytes_per_step",
                     spw_cli_growth_of_device(report->categories->growth, ordinal));
    json_steps(report, ordinal);
    json_sites(report, device, ordinal);
    spw_write(out, "}");
}

static void json_marks(struct spw_cli_report *report)
{
    const struct spw_cli_marks *marks = &report->state.marks;
    int devices = spw_cli_state_devices(&report->state);
    struct spw_writer *out = &report->out;

    spw_write(out, ", \"marks\": [");
    for (unsigned i = 0; i < marks->count; i++) {
        const struct spw_cli_mark *mark = &marks->list[i];

        spw_write(out, i == 0 ? "{\"name\": " : ", {\"name\": ");
        spw_write_string(out, mark->name);
        spw_write_figure(out, "count", mark->count);
        spw_write_figure(out, "ns",
                         spw_cli_mark_time(mark, report->state.time) * SPW_RECORD_UNIT_NS);
        spw_write(out, ", \"live_peak_bytes\": [");
        for (int device = 0; device < devices; device++) {
            spw_write(out, device == 0 ? "" : ", ");
            spw_write_number(out, mark->peak[device]);
        }
        spw_write(out, "]}");
    }
    spw_write(out, "]");
}

void spw_cli_report_json(struct spw_cli_report *report)
{
    const struct spw_record_header *header = &report->events.blocks.header;
    const struct spw_cli_state *state = &report->state;
    struct spw_writer *out = &report->out;
    int devices = spw_cli_state_devices(state);

    spw_write(out, "{\"schema\": 1");
    spw_write_text(out, "program", state->about[0]);
    spw_write_text(out, "mode", state->about[1]);
    spw_write_text(out, "host", state->about[2]);
    spw_write_figure(out, "pid", (uint64_t)header->pid);
    if (header->rank >= 0) {
        spw_write_figure(out, "rank", (uint64_t)header->rank);
    }
    spw_write_figure(out, "duration_ns", state->time * SPW_RECORD_UNIT_NS);
    spw_write_figure(out, "events", state->events);
    spw_write_figure(out, "steps", state->steps);
    spw_write_text(out, "steps_kind", report->categories->steps_kind);
    spw_write_figure(out, "steps_found", report->categories->steps->count);
    spw_write_key(out, "complete");
    spw_write(out,
              atomic_load(&header->complete) != 0 && report->problem[0] == '\0' ? "true" : "false");
    spw_write_text(out, "problem", report->problem);
    spw_write_figure(out, "lost_events", get(&header->lost.events));
    spw_write_figure(out, "lost_allocs", get(&header->lost.allocs));
    spw_write_figure(out, "lost_alloc_bytes", get(&header->lost.alloc_bytes));
    spw_write_figure(out, "lost_frees", get(&header->lost.frees));
    spw_write_figure(out, "lost_marks", get(&header->lost_marks));
    spw_write_figure(out, "unknown_frees", state->unknown_frees);
    json_marks(report);
    spw_write(out, ", \"devices\": [");
    for (int i = 0; i < devices; i++) {
        spw_write(out, i == 0 ? "\n  " : ",\n  ");
        json_device(report, i);
    }
    spw_write(out, "\n]}\n");
}
