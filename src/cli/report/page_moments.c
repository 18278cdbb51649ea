#include "cli/report/page_parts.h"

#include "callsite/label.h"
#include "cli/report/categories.h"
#include "common/minmax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A page's limits, shared by its devices. */
enum { WINDOWS = 800, WINDOWS_OF_ALL = 1600, WINDOWS_LEAST = 100 };
enum { SITES = 40, SITES_OF_ALL = 160, SITES_LEAST = 8 };

/* The memory of a device at one moment. */
struct moment {
    bool used;
    uint64_t time, live, pooled; /* `pooled`: bytes in spillway's pool */
    uint64_t committed, host;    /* bytes of the pool on the device and on the host */
    uint64_t by[SPW_CLI_CATEGORIES];
    uint64_t held[SITES]; /* bytes of each shown site */
};

/* The committed memory and the moves in a window of time. */
struct traffic {
    bool gauged;
    uint64_t committed, host, limit; /* bytes: the highest values; `limit`: the latest */
    uint64_t moves, to_host, to_device, held_back_ns, stall_ns;
};

struct spw_cli_page_moments {
    int device;
    uint64_t windows, window; /* number of windows, length of a window in units */
    struct moment *tops;      /* the peak of each window */
    struct moment *ends;      /* after the last event of each window */
    struct traffic *traffic;
    uint32_t sites[SITES]; /* the shown sites, by choose_sites */
    size_t site_count, site_most;
    uint64_t by[SPW_CLI_CATEGORIES], pooled, stall_ns; /* current values */
    struct moment *newest; /* the top that the previous event set; NULL: none */
};

/* ---- shown sites ---- */

static uint64_t own_peak(const struct spw_cli_device *device, uint32_t site)
{
    return site < device->held_count ? device->held[site].peak : 0;
}

static bool is_chosen(const struct spw_cli_page_moments *moments, uint32_t site)
{
    for (size_t i = 0; i < moments->site_count; i++) {
        if (moments->sites[i] == site) {
            return true;
        }
    }
    return false;
}

static void choose_by(struct spw_cli_page_moments *moments, const struct spw_cli_device *device,
                      spw_cli_weight *weight, size_t most)
{
    size_t count;
    struct spw_cli_ranked *ranked = spw_cli_report_rank(device, weight, &count);

    for (size_t i = 0; ranked != NULL && i < count && moments->site_count < most; i++) {
        if (!is_chosen(moments, ranked[i].site)) {
            moments->sites[moments->site_count++] = ranked[i].site;
        }
    }
    free(ranked);
}

/* Chooses the sites that are largest at the device's peak. A quarter is reserved for the sites with
 * the largest own peaks. */
static void choose_sites(struct spw_cli_page_moments *moments, const struct spw_cli_device *device)
{
    choose_by(moments, device, spw_cli_state_at_peak, moments->site_most * 3 / 4);
    choose_by(moments, device, own_peak, moments->site_most);
    choose_by(moments, device, spw_cli_state_at_peak, moments->site_most);
}

struct spw_cli_page_moments *spw_cli_page_moments_create(const struct spw_cli_report *report,
                                                         int ordinal, unsigned devices)
{
    struct spw_cli_page_moments *moments = calloc(1, sizeof(*moments));

    if (moments == NULL) {
        return NULL;
    }
    moments->device = ordinal;
    moments->windows = spw_cli_page_share(WINDOWS_OF_ALL, devices, WINDOWS_LEAST, WINDOWS);
    moments->window = report->state.time / moments->windows + 1;
    moments->site_most = spw_cli_page_share(SITES_OF_ALL, devices, SITES_LEAST, SITES);
    moments->tops = calloc(moments->windows, sizeof(*moments->tops));
    moments->ends = calloc(moments->windows, sizeof(*moments->ends));
    moments->traffic = calloc(moments->windows, sizeof(*moments->traffic));
    if (moments->tops == NULL || moments->ends == NULL || moments->traffic == NULL) {
        spw_cli_page_moments_free(moments);
        return NULL;
    }
    choose_sites(moments, &report->state.devices[ordinal]);
    return moments;
}

void spw_cli_page_moments_free(struct spw_cli_page_moments *moments)
{
    if (moments != NULL) {
        free(moments->tops);
        free(moments->ends);
        free(moments->traffic);
        free(moments);
    }
}

/* ---- events ---- */

static uint64_t window_of(const struct spw_cli_page_moments *moments, uint64_t time)
{
    uint64_t number = time / moments->window;

    return number < moments->windows ? number : moments->windows - 1;
}

static void set_moment(const struct spw_cli_page_moments *moments,
                       const struct spw_cli_device *device, uint64_t time, struct moment *moment)
{
    moment->used = true;
    moment->time = time;
    moment->live = device->live;
    moment->pooled = moments->pooled;
    moment->committed = device->gauges[SPW_RECORD_GAUGE_committed_bytes];
    moment->host = device->gauges[SPW_RECORD_GAUGE_host_bytes];
    memcpy(moment->by, moments->by, sizeof(moment->by));
    for (size_t i = 0; i < moments->site_count; i++) {
        moment->held[i] = spw_cli_report_live(device, moments->sites[i]);
    }
}

static void take_moment(struct spw_cli_page_moments *moments, const struct spw_cli_device *device,
                        uint64_t time)
{
    uint64_t number = window_of(moments, time);
    struct moment *top = &moments->tops[number];

    if (!top->used || device->live > top->live) {
        set_moment(moments, device, time, top);
        moments->newest = top;
    }
    set_moment(moments, device, time, &moments->ends[number]);
}

static void take_block(struct spw_cli_page_moments *moments, const struct spw_cli_report *report,
                       const struct spw_cli_block *block, bool begins)
{
    uint64_t by = begins ? block->counted : -block->counted;

    moments->by[spw_cli_report_category(report, block)] += by;
    moments->pooled += block->source == SPW_RECORD_POOL ? by : 0;
}

static void take_gauges(struct spw_cli_page_moments *moments, struct traffic *traffic,
                        const struct spw_cli_event *event)
{
    uint64_t stall = event->gauges[SPW_RECORD_GAUGE_stall_ns];
    uint64_t committed = event->gauges[SPW_RECORD_GAUGE_committed_bytes];
    uint64_t host = event->gauges[SPW_RECORD_GAUGE_host_bytes];

    if (moments->newest != NULL) { /* the gauges follow the allocation that committed memory */
        moments->newest->committed = committed;
        moments->newest->host = host;
    }
    traffic->gauged = true;
    traffic->committed = spw_max(traffic->committed, committed);
    traffic->host = spw_max(traffic->host, host);
    traffic->limit = event->gauges[SPW_RECORD_GAUGE_limit_bytes];
    traffic->stall_ns += stall > moments->stall_ns ? stall - moments->stall_ns : 0;
    moments->stall_ns = stall;
}

void spw_cli_page_moments_take(struct spw_cli_page_moments *moments,
                               const struct spw_cli_report *report,
                               const struct spw_cli_event *event, const struct spw_cli_block *freed)
{
    const struct spw_cli_device *device = &report->state.devices[event->device];
    struct traffic *traffic = &moments->traffic[window_of(moments, event->time)];
    const struct spw_cli_block *made = NULL;

    if (event->kind != SPW_RECORD_GAUGES) {
        moments->newest = NULL;
    }
    if (freed != NULL) {
        take_block(moments, report, freed, false);
    }
    switch (event->kind) {
    case SPW_RECORD_ALLOC:
        made = spw_cli_state_block(&report->state, event->device, event->address);
        if (made != NULL) {
            take_block(moments, report, made, true);
        }
        take_moment(moments, device, event->time);
        break;
    case SPW_RECORD_FREE:
        take_moment(moments, device, event->time);
        break;
    case SPW_RECORD_GAUGES:
        take_gauges(moments, traffic, event);
        break;
    case SPW_RECORD_MOVE:
        traffic->moves++;
        traffic->to_host += event->to_host;
        traffic->to_device += event->to_device;
        traffic->held_back_ns += event->ns;
        break;
    default:
        break;
    }
}

/* ---- JSON ---- */

/* Writes the figures that changed since the previous moment. Each figure follows the index of its
 * site. */
static void write_held(struct spw_writer *out, const struct moment *moment,
                       const struct moment *before, size_t count)
{
    bool first = true;

    spw_write(out, ", \"held\": [");
    for (size_t i = 0; i < count; i++) {
        if (moment->held[i] != (before != NULL ? before->held[i] : 0)) {
            spw_write(out, first ? "" : ",");
            spw_write_number(out, i);
            spw_write(out, ",");
            spw_write_number(out, moment->held[i]);
            first = false;
        }
    }
    spw_write(out, "]}");
}

static void write_moment(const struct spw_cli_page_moments *moments, struct spw_writer *out,
                         const struct moment *moment, const struct moment **before)
{
    spw_write(out, *before == NULL ? "\n{\"us\": " : ",\n{\"us\": ");
    spw_write_number(out, moment->time / SPW_CLI_PAGE_UNITS_IN_US);
    spw_write_figure(out, "live", moment->live);
    spw_write_figure(out, "pooled", moment->pooled);
    spw_write_figure(out, "committed", moment->committed);
    spw_write_figure(out, "host", moment->host);
    spw_write(out, ", \"by\": [");
    for (int i = 0; i < SPW_CLI_CATEGORIES; i++) {
        spw_write(out, i == 0 ? "" : ",");
        spw_write_number(out, moment->by[i]);
    }
    spw_write(out, "]");
    write_held(out, moment, *before, moments->site_count);
    *before = moment;
}

static void write_moments(const struct spw_cli_page_moments *moments, struct spw_writer *out)
{
    const struct moment *before = NULL;

    spw_write(out, ", \"moments\": [");
    for (uint64_t i = 0; i < moments->windows; i++) {
        const struct moment *top = &moments->tops[i], *end = &moments->ends[i];

        if (top->used) {
            write_moment(moments, out, top, &before);
        }
        /* If the next window has no event, live memory stays as it was at the end of this
         * window. */
        if (top->used && end->live != top->live &&
            (i + 1 == moments->windows || !moments->tops[i + 1].used)) {
            write_moment(moments, out, end, &before);
        }
    }
    spw_write(out, "]");
}

static void write_traffic(const struct spw_cli_page_moments *moments, struct spw_writer *out)
{
    bool first = true;

    spw_write(out, ", \"traffic\": [");
    for (uint64_t i = 0; i < moments->windows; i++) {
        const struct traffic *traffic = &moments->traffic[i];

        if (!traffic->gauged && traffic->moves == 0) {
            continue;
        }
        spw_write(out, first ? "\n{\"us\": " : ",\n{\"us\": ");
        first = false;
        spw_write_number(out, i * moments->window / SPW_CLI_PAGE_UNITS_IN_US);
        if (traffic->gauged) {
            spw_write_figure(out, "committed", traffic->committed);
            spw_write_figure(out, "host", traffic->host);
            spw_write_figure(out, "limit", traffic->limit);
            spw_write_figure(out, "stall_us", traffic->stall_ns / 1000);
        }
        if (traffic->moves > 0) {
            spw_write_figure(out, "moves", traffic->moves);
            spw_write_figure(out, "to_host", traffic->to_host);
            spw_write_figure(out, "to_device", traffic->to_device);
            spw_write_figure(out, "held_back_us", traffic->held_back_ns / 1000);
        }
        spw_write(out, "}");
    }
    spw_write(out, "]");
}

static void write_frames(struct spw_cli_report *report, uint32_t site,
                         struct spw_cli_page_frames *texts)
{
    static struct spw_cli_frame frames[SPW_CLI_FRAMES];
    char text[sizeof(frames[0].name) + sizeof(frames[0].file) + 16];
    unsigned count = spw_cli_recorded_sites_frames(
        site, report->shown == SPW_CLI_SHOWN_NATIVE ? SPW_CLI_SHOWN_NATIVE : SPW_CLI_SHOWN_WRAPPERS,
        frames);
    struct spw_writer *out = &report->out;
    bool first = true;

    spw_write(out, ", \"frames\": [");
    for (unsigned i = 0; i < count; i++) {
        size_t number;

        snprintf(text, sizeof(text),
                 !frames[i].native           ? "%s  %s:%u"
                 : frames[i].file[0] != '\0' ? "%s  %s"
                                             : "%s",
                 frames[i].name, frames[i].file, frames[i].line);
        number = spw_cli_page_frames_number(texts, text, frames[i].wrapper);
        if (number != SIZE_MAX) {
            spw_write(out, first ? "" : ",");
            spw_write_number(out, number);
            first = false;
        }
    }
    spw_write(out, "]");
}

static void write_site(struct spw_cli_report *report, int ordinal, uint32_t site,
                       struct spw_cli_page_frames *frames)
{
    const struct spw_cli_device *device = &report->state.devices[ordinal];
    struct spw_writer *out = &report->out;
    char label[SPW_CALLSITE_LABEL];

    spw_cli_recorded_sites_label(site, label);
    spw_write(out, "{\"label\": ");
    spw_cli_page_string(out, label);
    spw_write_figure(out, "peak", own_peak(device, site));
    spw_write_figure(out, "at_peak", spw_cli_state_at_peak(device, site));
    spw_write_figure(out, "total", spw_cli_report_total(device, site));
    spw_write_figure(out, "allocs", site < device->held_count ? device->held[site].allocs : 0);
    spw_write_figure(out, "end", spw_cli_report_live(device, site));
    write_frames(report, site, frames);
    spw_write(out, "}");
}

void spw_cli_page_moments_write(const struct spw_cli_page_moments *moments,
                                struct spw_cli_report *report, struct spw_cli_page_frames *frames)
{
    struct spw_writer *out = &report->out;

    spw_write_figure(out, "window_us", moments->window / SPW_CLI_PAGE_UNITS_IN_US);
    spw_write(out, ", \"sites\": [");
    for (size_t i = 0; i < moments->site_count; i++) {
        spw_write(out, i == 0 ? "\n" : ",\n");
        write_site(report, moments->device, moments->sites[i], frames);
    }
    spw_write(out, "]");
    write_moments(moments, out);
    write_traffic(moments, out);
}
