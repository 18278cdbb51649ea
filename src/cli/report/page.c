/* Writes one self-contained HTML page. The page shows memory over time by category and call site,
 * the call sites that hold memory at any moment, events, and decisions of the policy. It needs no
 * network. */
#include "cli/report/report.h"

#include "cli/console/messages.h"
#include "cli/report/categories.h"
#include "cli/report/page_parts.h"
#include "common/path.h"

#include "cli/page.inc"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct page {
    unsigned used;                                         /* number of used devices */
    struct spw_cli_page_moments *moments[SPW_DEVICES_MAX]; /* NULL: the device is not used */
    struct spw_cli_page_blocks *blocks[SPW_DEVICES_MAX];
    struct spw_cli_page_head *head;
    struct spw_cli_page_events *events;
    struct spw_cli_page_frames *frames;
};

/* ---- reading ---- */

static void take(struct spw_cli_report *report, const struct spw_cli_event *event,
                 const struct spw_cli_block *freed, void *context)
{
    struct page *page = context;

    if (page->moments[event->device] != NULL) {
        spw_cli_page_moments_take(page->moments[event->device], report, event, freed);
        spw_cli_page_blocks_take(page->blocks[event->device], report, event, freed);
    }
    spw_cli_page_head_take(page->head, event);
    spw_cli_page_events_take(page->events, report, event, freed);
}

static void fini(struct page *page)
{
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        spw_cli_page_moments_free(page->moments[i]);
        spw_cli_page_blocks_free(page->blocks[i]);
    }
    spw_cli_page_head_free(page->head);
    spw_cli_page_events_free(page->events);
    spw_cli_page_frames_free(page->frames);
}

static bool init(struct page *page, const struct spw_cli_report *report)
{
    bool made;

    memset(page, 0, sizeof(*page));
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        page->used += report->state.devices[i].held != NULL;
    }
    page->head = spw_cli_page_head_create();
    page->events = spw_cli_page_events_create(report);
    page->frames = spw_cli_page_frames_create();
    made = page->head != NULL && page->events != NULL && page->frames != NULL;
    for (int i = 0; made && i < SPW_DEVICES_MAX; i++) {
        if (report->state.devices[i].held != NULL) {
            page->moments[i] = spw_cli_page_moments_create(report, i, page->used);
            page->blocks[i] = spw_cli_page_blocks_create(report, i, page->used);
            made = page->moments[i] != NULL && page->blocks[i] != NULL;
        }
    }
    if (!made) {
        fini(page);
    }
    return made;
}

/* ---- a device ---- */

static void put_events(struct spw_cli_report *report, const struct spw_cli_device *device)
{
    char text[400];

    snprintf(text, sizeof(text),
             "Committed: at most %s. Spilled: %s to the host, %s back, in %" PRIu64
             " moves. Stolen: %" PRIu64 " granules of free memory. Out of memory: %" PRIu64
             " times.",
             spw_cli_size(device->committed_peak),
             spw_cli_size(device->gauges[SPW_RECORD_GAUGE_spilled_bytes]),
             spw_cli_size(device->gauges[SPW_RECORD_GAUGE_promoted_bytes]), device->moves,
             device->gauges[SPW_RECORD_GAUGE_steals], device->ooms);
    spw_cli_page_text(&report->out, "text", text);
}

static void put_device(struct spw_cli_report *report, const struct page *page, int ordinal,
                       bool first)
{
    const struct spw_cli_device *device = &report->state.devices[ordinal];
    struct spw_writer *out = &report->out;

    spw_write(out, first ? "\n{\"ordinal\": " : ",\n{\"ordinal\": ");
    spw_write_number(out, (uint64_t)ordinal);
    spw_write_figure(out, "peak", device->live_peak);
    spw_write_figure(out, "peak_us", device->peak_time / SPW_CLI_PAGE_UNITS_IN_US);
    spw_write_figure(out, "closed_us", device->gauges[SPW_RECORD_GAUGE_closed_ns] / 1000);
    spw_write_figure(out, "stall_us", device->gauges[SPW_RECORD_GAUGE_stall_ns] / 1000);
    put_events(report, device);
    spw_cli_page_growth_write(report, ordinal, page->used);
    spw_cli_page_moments_write(page->moments[ordinal], report, page->frames);
    spw_cli_page_blocks_write(page->blocks[ordinal], report, page->frames);
    spw_write(out, "}");
}

/* ---- the page ---- */

static void put_notes(struct spw_cli_report *report)
{
    const struct spw_record_header *header = &report->events.blocks.header;
    uint64_t lost = atomic_load(&header->lost.events);
    uint64_t marks = atomic_load(&header->lost_marks);
    struct spw_writer *out = &report->out;
    char text[256];
    bool any = false;

    spw_write(out, ", \"notes\": [");
    if (lost > 0) {
        snprintf(text, sizeof(text), "%" PRIu64 " events are missing at the end: the file was full",
                 lost);
        spw_cli_page_string(out, text);
        any = true;
    }
    if (marks > 0) {
        snprintf(text, sizeof(text),
                 "%" PRIu64
                 " marks of parts and steps are missing, since marks may take 1/%d of the file",
                 marks, SPW_RECORD_MARK_SHARE);
        spw_write(out, any ? ", " : "");
        spw_cli_page_string(out, text);
        any = true;
    }
    if (report->problem[0] != '\0') {
        snprintf(text, sizeof(text), "The file is damaged: %s", report->problem);
        spw_write(out, any ? ", " : "");
        spw_cli_page_string(out, text);
    } else if (atomic_load(&header->complete) == 0) {
        spw_write(out, any ? ", " : "");
        spw_cli_page_string(
            out, "The program was killed, or is still running: the recording has no end");
    }
    spw_write(out, "]");
}

static void put_categories(struct spw_cli_report *report)
{
    struct spw_writer *out = &report->out;

    spw_write(out, report->categories->known ? ", \"categories_known\": true"
                                             : ", \"categories_known\": false");
    spw_write(out, ", \"categories\": [");
    for (int i = 0; i < SPW_CLI_CATEGORIES; i++) {
        spw_write(out, i == 0 ? "" : ", ");
        spw_cli_page_string(out, spw_cli_category_name((enum spw_cli_category)i));
    }
    spw_write(out, "]");
}

static void put_data(struct spw_cli_report *report, const struct page *page)
{
    const struct spw_cli_state *state = &report->state;
    struct spw_writer *out = &report->out;

    spw_write(out, "\n{\"title\": ");
    spw_cli_page_string(out, state->about[SPW_RECORD_ABOUT_PROGRAM][0] != '\0'
                                 ? state->about[SPW_RECORD_ABOUT_PROGRAM]
                                 : "a program");
    spw_cli_page_text(out, "file", spw_path_name(report->path));
    if (report->events.blocks.header.rank >= 0) {
        spw_write_figure(out, "rank", (uint64_t)report->events.blocks.header.rank);
    }
    spw_cli_page_head_write(page->head, report);
    spw_cli_page_text(out, "policy", state->about[SPW_RECORD_ABOUT_POLICY]);
    spw_write_figure(out, "duration_us", state->time / SPW_CLI_PAGE_UNITS_IN_US);
    put_notes(report);
    put_categories(report);
    spw_cli_page_events_write(page->events, report);
    spw_write(out, ", \"devices\": [");
    for (int i = 0, shown = 0; i < SPW_DEVICES_MAX; i++) {
        if (page->moments[i] != NULL) {
            put_device(report, page, i, shown++ == 0);
        }
    }
    spw_write(out, "\n]");
    spw_cli_page_frames_write(page->frames, out);
    spw_write(out, "}");
}

/* Writes an open recording. Returns false if memory runs out. */
static bool put_run(struct spw_cli_report *report, bool first)
{
    static struct page page;

    if (!spw_cli_report_categorise(report) || !init(&page, report)) {
        return false;
    }
    spw_cli_report_each(report, take, &page);
    spw_write(&report->out, first ? "" : ",");
    put_data(report, &page);
    fini(&page);
    return true;
}

static bool add_run(struct spw_cli_report *report, const char *command, bool first)
{
    bool put;

    if (report->problem[0] != '\0') {
        spw_cli_complain(command, "%s: nothing was read beyond this: %s", report->path,
                         report->problem);
    }
    put = put_run(report, first);
    if (!put) {
        spw_cli_complain(command, "%s: not enough memory", report->path);
    }
    spw_cli_categories_free(report->categories);
    spw_cli_report_close(report);
    return put;
}

/* Writes JSON so that no text in it can end the script element that contains it. */
static void put_json(struct spw_writer *out, const char *json)
{
    char letter[2] = "";

    for (; *json != '\0'; json++) {
        letter[0] = *json;
        spw_write(out, *json == '<' ? "\\u003c" : letter);
    }
}

bool spw_cli_report_pages(const char *command, const struct spw_cli_pages *pages, int fd)
{
    static struct spw_cli_report report;
    size_t written = 0;

    report.out = (struct spw_writer){.fd = fd};
    report.shown = pages->shown;
    report.exit_code = pages->exit_code;
    for (size_t i = 0; i < pages->count; i++) {
        if (!spw_cli_report_open(&report, command, pages->paths[i])) {
            continue;
        }
        if (written == 0) {
            spw_write(&report.out, page_before);
            spw_write(&report.out, "{\"runs\": [");
        }
        written += add_run(&report, command, written == 0);
    }
    if (written > 0) {
        spw_write(&report.out, "]");
        if (pages->advice != NULL) {
            spw_write(&report.out, ", \"advice\": ");
            put_json(&report.out, pages->advice);
        }
        spw_write(&report.out, "}");
        spw_write(&report.out, page_after);
    }
    spw_write_flush(&report.out);
    if (report.out.failed) {
        spw_cli_complain(command, "cannot write: %s", strerror(errno));
    }
    return written > 0 && !report.out.failed;
}
