/* One page of HTML with everything in it: memory over time by call site, and who held what at any
 * moment of it. It needs no network.
 *
 * Time is cut into windows. Each shows the moment at which most was live, so that every peak is
 * there, and the one at its end. */
#include "cli/reports/recording.h"

#include "callsite/label.h"
#include "common/size.h"
#include "common/utf8.h"

#include "cli/page.inc"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 800, SITES = 40, MOVES = 2000, UNITS_IN_US = 1000 / SPW_RECORD_UNIT_NS };

/* The live memory of a device at a time. */
struct moment {
    bool used;
    uint64_t time, live;
    uint64_t held[SITES]; /* by the sites that are shown */
};

struct page {
    int device;
    uint64_t window;       /* its length, in units */
    struct moment *tops;   /* WINDOWS: when most was live in each */
    struct moment *ends;   /* WINDOWS: after the last event of each */
    uint32_t sites[SITES]; /* that are shown, the largest at the peak first */
    size_t site_count;
    size_t moves; /* that were written */
};

/* ---- text inside of a script ---- */

/* A string of JSON that cannot end the script that it stands in. */
static void put_string(struct spw_writer *out, const char *text)
{
    char character[8] = "";

    spw_write(out, "\"");
    while (*text != '\0') {
        size_t length = spw_utf8_length(text);

        if (length == 0 || spw_utf8_is_control(text, length) || *text == '<' || *text == '>' ||
            *text == '&' || *text == '"' || *text == '\\') {
            snprintf(character, sizeof(character), "\\u%04x", (unsigned)(uint8_t)*text);
            length = length == 0 ? 1 : length;
            spw_write(out, length == 1 ? character : "?");
        } else {
            memcpy(character, text, length);
            character[length] = '\0';
            spw_write(out, character);
        }
        text += length;
    }
    spw_write(out, "\"");
}

static void put_text(struct spw_writer *out, const char *key, const char *text)
{
    spw_write_key(out, key);
    put_string(out, text);
}

/* ---- moments ---- */

static void set_moment(const struct page *page, const struct spw_cli_device *device, uint64_t time,
                       struct moment *moment)
{
    moment->used = true;
    moment->time = time;
    moment->live = device->live;
    for (size_t i = 0; i < page->site_count; i++) {
        moment->held[i] = spw_cli_report_live(device, page->sites[i]);
    }
}

static void take_moment(struct page *page, const struct spw_cli_device *device, uint64_t time)
{
    uint64_t number = time / page->window < WINDOWS ? time / page->window : WINDOWS - 1;
    struct moment *top = &page->tops[number];

    if (!top->used || device->live > top->live) {
        set_moment(page, device, time, top);
    }
    set_moment(page, device, time, &page->ends[number]);
}

static void take(struct spw_cli_report *report, const struct spw_cli_event *event,
                 const struct spw_cli_block *freed, void *context)
{
    struct page *page = context;

    (void)freed;
    if (event->device == page->device &&
        (event->kind == SPW_RECORD_ALLOC || event->kind == SPW_RECORD_FREE)) {
        take_moment(page, &report->state.devices[event->device], event->time);
    }
}

static void choose_sites(struct page *page, const struct spw_cli_device *device)
{
    size_t count;
    struct spw_cli_ranked *ranked = spw_cli_report_rank(device, spw_cli_state_at_peak, &count);

    page->site_count = 0;
    for (size_t i = 0; ranked != NULL && i < count && i < SITES; i++) {
        page->sites[page->site_count++] = ranked[i].site;
    }
    free(ranked);
}

static void put_moment(struct spw_cli_report *report, const struct page *page,
                       const struct moment *moment, bool *first)
{
    struct spw_writer *out = &report->out;

    spw_write(out, *first ? "\n{\"us\": " : ",\n{\"us\": ");
    *first = false;
    spw_write_number(out, moment->time / UNITS_IN_US);
    spw_write_figure(out, "live", moment->live);
    spw_write(out, ", \"held\": [");
    for (size_t i = 0; i < page->site_count; i++) {
        spw_write(out, i == 0 ? "" : ",");
        spw_write_number(out, moment->held[i]);
    }
    spw_write(out, "]}");
}

static void put_moments(struct spw_cli_report *report, struct page *page)
{
    bool first = true;

    memset(page->tops, 0, WINDOWS * sizeof(*page->tops));
    memset(page->ends, 0, WINDOWS * sizeof(*page->ends));
    spw_cli_report_each(report, take, page);
    spw_write(&report->out, ", \"moments\": [");
    for (int i = 0; i < WINDOWS; i++) {
        if (page->tops[i].used) {
            put_moment(report, page, &page->tops[i], &first);
        }
        /* Live memory stays until the next event, however far away that is. */
        if (page->tops[i].used && page->ends[i].live != page->tops[i].live &&
            (i + 1 == WINDOWS || !page->tops[i + 1].used)) {
            put_moment(report, page, &page->ends[i], &first);
        }
    }
    spw_write(&report->out, "]");
}

/* ---- moves ---- */

static void take_move(struct spw_cli_report *report, const struct spw_cli_event *event,
                      const struct spw_cli_block *freed, void *context)
{
    struct page *page = context;
    struct spw_writer *out = &report->out;

    (void)freed;
    if (event->device == page->device && event->kind == SPW_RECORD_MOVE && page->moves < MOVES) {
        spw_write(out, page->moves++ == 0 ? "{\"us\": " : ", {\"us\": ");
        spw_write_number(out, event->time / UNITS_IN_US);
        spw_write_figure(out, "to_host", event->to_host);
        spw_write_figure(out, "to_device", event->to_device);
        spw_write(out, "}");
    }
}

/* ---- a device ---- */

static void put_sites(struct spw_cli_report *report, const struct page *page)
{
    static struct spw_cli_frame frames[SPW_CLI_FRAMES];
    char text[sizeof(frames[0].name) + sizeof(frames[0].file) + 16], label[SPW_CALLSITE_LABEL];
    struct spw_writer *out = &report->out;

    spw_write(out, ", \"sites\": [");
    for (size_t i = 0; i < page->site_count; i++) {
        unsigned count = spw_cli_recorded_sites_frames(page->sites[i], frames);

        spw_cli_recorded_sites_label(page->sites[i], label);
        spw_write(out, i == 0 ? "\n{\"label\": " : ",\n{\"label\": ");
        put_string(out, label);
        spw_write(out, ", \"frames\": [");
        for (unsigned j = 0; j < count; j++) {
            snprintf(text, sizeof(text), frames[j].native ? "%s  %s" : "%s  %s:%u", frames[j].name,
                     frames[j].file, frames[j].line);
            spw_write(out, j == 0 ? "" : ", ");
            put_string(out, text);
        }
        spw_write(out, "]}");
    }
    spw_write(out, "]");
}

/* The events of the device besides allocations, in a sentence. */
static void put_events(struct spw_cli_report *report, const struct spw_cli_device *device)
{
    char spilled[SPW_SIZE_TEXT], back[SPW_SIZE_TEXT], committed[SPW_SIZE_TEXT], text[400];

    snprintf(text, sizeof(text),
             "Committed: at most %s. Spilled: %s to the host, %s back, in %" PRIu64
             " moves (marked below the curve). Stolen: %" PRIu64
             " granules of free memory. Out of memory: %" PRIu64 " times.",
             spw_size_text(device->committed_peak, committed),
             spw_size_text(device->gauges[SPW_RECORD_GAUGE_spilled_bytes], spilled),
             spw_size_text(device->gauges[SPW_RECORD_GAUGE_promoted_bytes], back), device->moves,
             device->gauges[SPW_RECORD_GAUGE_steals], device->ooms);
    put_text(&report->out, "text", text);
}

static void put_device(struct spw_cli_report *report, struct page *page, int ordinal, bool first)
{
    const struct spw_cli_device *device = &report->state.devices[ordinal];
    struct spw_writer *out = &report->out;

    page->device = ordinal;
    page->moves = 0;
    choose_sites(page, device);
    spw_write(out, first ? "\n{\"ordinal\": " : ",\n{\"ordinal\": ");
    spw_write_number(out, (uint64_t)ordinal);
    spw_write_figure(out, "peak", device->live_peak);
    spw_write_figure(out, "peak_us", device->peak_time / UNITS_IN_US);
    put_events(report, device);
    put_sites(report, page);
    put_moments(report, page);
    spw_write(out, ", \"moves\": [");
    spw_cli_report_each(report, take_move, page);
    spw_write(out, "]}");
}

static void put_notes(struct spw_cli_report *report)
{
    const struct spw_record_header *header = &report->events.blocks.header;
    uint64_t lost = atomic_load(&header->lost.events);
    struct spw_writer *out = &report->out;
    char text[256];
    bool any = false;

    spw_write(out, ", \"notes\": [");
    if (lost > 0) {
        snprintf(text, sizeof(text), "%" PRIu64 " events are missing at the end: the file was full",
                 lost);
        put_string(out, text);
        any = true;
    }
    if (report->problem[0] != '\0') {
        snprintf(text, sizeof(text), "The file is damaged: %s", report->problem);
        spw_write(out, any ? ", " : "");
        put_string(out, text);
    } else if (atomic_load(&header->complete) == 0) {
        spw_write(out, any ? ", " : "");
        put_string(out, "The program was killed, or is still running: the recording has no end");
    }
    spw_write(out, "]");
}

void spw_cli_report_page(struct spw_cli_report *report)
{
    const struct spw_cli_state *state = &report->state;
    struct page page = {.window = state->time / WINDOWS + 1,
                        .tops = calloc(WINDOWS, sizeof(*page.tops)),
                        .ends = calloc(WINDOWS, sizeof(*page.ends))};
    int devices = spw_cli_state_devices(state);
    struct spw_writer *out = &report->out;
    char about[3 * SPW_RECORD_TEXT];

    if (page.tops == NULL || page.ends == NULL) {
        free(page.tops);
        free(page.ends);
        return;
    }
    snprintf(about, sizeof(about), "pid %d on %s, mode %s, %" PRIu64 " events",
             report->events.blocks.header.pid, state->about[2], state->about[1], state->events);
    spw_write(out, page_before);
    spw_write(out, "{\"title\": ");
    put_string(out, state->about[0][0] != '\0' ? state->about[0] : "a program");
    put_text(out, "about", about);
    spw_write_figure(out, "duration_us", state->time / UNITS_IN_US);
    put_notes(report);
    spw_write(out, ", \"devices\": [");
    for (int i = 0, shown = 0; i < devices; i++) {
        if (report->state.devices[i].held != NULL) {
            put_device(report, &page, i, shown++ == 0);
        }
    }
    spw_write(out, "\n]}");
    spw_write(out, page_after);
    free(page.tops);
    free(page.ends);
}
