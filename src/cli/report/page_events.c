#include "cli/report/page_parts.h"

#include "callsite/label.h"
#include "cli/report/categories.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 800, PARTS = 12, OOMS = 100, RULES = 256, RULE_NAME = 128 };

struct span {
    uint64_t from, to;
};

/* The times during which a marked part was open. Spans less than a window apart are merged. */
struct part {
    bool open;
    size_t count;
    struct span spans[WINDOWS + 1];
};

struct oom {
    struct spw_cli_event event; /* its `text` is not valid */
    uint32_t site;
};

struct rule {
    char name[RULE_NAME];
    bool known;
    uint64_t allocs, bytes, host_allocs, host_bytes;
    uint64_t live, live_peak;
};

struct spw_cli_page_events {
    uint64_t window; /* length of a window, in units */
    struct {
        uint64_t time, number, count;
    } steps[WINDOWS]; /* by window: the first step, and the number of steps */
    size_t next_step; /* index of the next end in the categories' list */
    struct part parts[PARTS];
    struct oom ooms[OOMS];
    uint64_t oom_count;
    struct rule rules[RULES]; /* by number; 0: no rule decided */
};

struct spw_cli_page_events *spw_cli_page_events_create(const struct spw_cli_report *report)
{
    struct spw_cli_page_events *events = calloc(1, sizeof(*events));

    if (events != NULL) {
        events->window = report->state.time / WINDOWS + 1;
    }
    return events;
}

void spw_cli_page_events_free(struct spw_cli_page_events *events)
{
    free(events);
}

/* ---- events ---- */

static void take_step(struct spw_cli_page_events *events, uint64_t time, uint64_t number)
{
    uint64_t window = time / events->window;

    window = window < WINDOWS ? window : WINDOWS - 1;
    if (events->steps[window].count++ == 0) {
        events->steps[window].time = time;
        events->steps[window].number = number;
    }
}

/* Takes the steps that end with this event: marked steps, or steps that were found without
 * marks. */
static void take_steps(struct spw_cli_page_events *events, const struct spw_cli_report *report,
                       const struct spw_cli_event *event)
{
    const struct spw_cli_ends *ends = report->categories->steps;

    while (events->next_step < ends->count &&
           ends->events[events->next_step] <= report->state.events) {
        events->next_step++;
        take_step(events, event->time,
                  event->kind == SPW_RECORD_STEP ? event->number : events->next_step);
    }
}

static void open_part(struct part *part, uint64_t time, uint64_t window)
{
    bool joins = part->count > 0 &&
                 (part->count == WINDOWS + 1 || time - part->spans[part->count - 1].to < window);

    part->open = true;
    if (!joins) {
        part->spans[part->count++].from = time;
    }
}

static void close_part(struct part *part, uint64_t time)
{
    part->open = false;
    part->spans[part->count - 1].to = time;
}

static void take_marks(struct spw_cli_page_events *events, const struct spw_cli_report *report,
                       uint64_t time)
{
    const struct spw_cli_marks *marks = &report->state.marks;

    for (unsigned i = 0; i < marks->count && i < PARTS; i++) {
        struct part *part = &events->parts[i];

        if (marks->list[i].open > 0 && !part->open) {
            open_part(part, time, events->window);
        } else if (marks->list[i].open == 0 && part->open) {
            close_part(part, time);
        }
    }
}

static struct rule *rule_of(struct spw_cli_page_events *events, uint64_t number)
{
    return &events->rules[number < RULES ? number : RULES - 1];
}

static void take_name(struct spw_cli_page_events *events, const struct spw_cli_report *report,
                      const struct spw_cli_event *event)
{
    struct rule *rule = rule_of(events, event->number);

    if (event->named == SPW_RECORD_NAMED_MARK) {
        take_marks(events, report, event->time);
    } else if (event->named == SPW_RECORD_NAMED_RULE) {
        rule->known = true;
        snprintf(rule->name, sizeof(rule->name), "%.*s", (int)event->text.length,
                 event->text.bytes);
    }
}

static void take_alloc(struct spw_cli_page_events *events, const struct spw_cli_report *report,
                       const struct spw_cli_event *event)
{
    struct rule *rule = rule_of(events, event->rule);
    const struct spw_cli_block *block =
        spw_cli_state_block(&report->state, event->device, event->address);

    rule->allocs++;
    rule->bytes += event->bytes;
    rule->host_allocs += event->host_bytes > 0;
    rule->host_bytes += event->host_bytes;
    rule->live += block != NULL ? block->counted : 0;
    rule->live_peak = rule->live > rule->live_peak ? rule->live : rule->live_peak;
}

static void take_oom(struct spw_cli_page_events *events, const struct spw_cli_report *report,
                     const struct spw_cli_event *event)
{
    if (events->oom_count < OOMS) {
        events->ooms[events->oom_count] =
            (struct oom){*event, spw_cli_recorded_sites_number(report->state.sites, event->number)};
    }
    events->oom_count++;
}

void spw_cli_page_events_take(struct spw_cli_page_events *events,
                              const struct spw_cli_report *report,
                              const struct spw_cli_event *event, const struct spw_cli_block *freed)
{
    if (freed != NULL) {
        rule_of(events, freed->rule)->live -= freed->counted;
    }
    take_steps(events, report, event);
    switch (event->kind) {
    case SPW_RECORD_ALLOC:
        take_alloc(events, report, event);
        break;
    case SPW_RECORD_NAME:
        take_name(events, report, event);
        break;
    case SPW_RECORD_OOM:
        take_oom(events, report, event);
        break;
    default:
        break;
    }
}

/* ---- JSON ---- */

static void write_us(struct spw_writer *out, uint64_t time)
{
    spw_write_number(out, time / SPW_CLI_PAGE_UNITS_IN_US);
}

static void write_steps(const struct spw_cli_page_events *events, struct spw_writer *out)
{
    bool first = true;

    spw_write(out, ", \"steps\": [");
    for (int i = 0; i < WINDOWS; i++) {
        if (events->steps[i].count > 0) {
            spw_write(out, first ? "{\"us\": " : ", {\"us\": ");
            first = false;
            write_us(out, events->steps[i].time);
            spw_write_figure(out, "number", events->steps[i].number);
            spw_write_figure(out, "count", events->steps[i].count);
            spw_write(out, "}");
        }
    }
    spw_write(out, "]");
}

static void write_spans(const struct part *part, struct spw_writer *out)
{
    spw_write(out, ", \"spans\": [");
    for (size_t i = 0; i < part->count; i++) {
        spw_write(out, i == 0 ? "[" : ",[");
        write_us(out, part->spans[i].from);
        spw_write(out, ",");
        write_us(out, part->spans[i].to);
        spw_write(out, "]");
    }
    spw_write(out, "]");
}

static void write_parts(struct spw_cli_page_events *events, struct spw_cli_report *report)
{
    const struct spw_cli_marks *marks = &report->state.marks;
    int devices = spw_cli_state_devices(&report->state);
    struct spw_writer *out = &report->out;

    spw_write(out, ", \"parts\": [");
    for (unsigned i = 0; i < marks->count; i++) {
        const struct spw_cli_mark *mark = &marks->list[i];

        spw_write(out, i == 0 ? "\n{\"name\": " : ",\n{\"name\": ");
        spw_cli_page_string(out, mark->name);
        spw_write_figure(out, "count", mark->count);
        spw_write_figure(out, "us",
                         spw_cli_mark_time(mark, report->state.time) / SPW_CLI_PAGE_UNITS_IN_US);
        spw_write_figure(out, "open", mark->open);
        spw_write(out, ", \"peak\": [");
        for (int device = 0; device < devices; device++) {
            spw_write(out, device == 0 ? "" : ",");
            spw_write_number(out, mark->peak[device]);
        }
        spw_write(out, "]");
        if (i < PARTS) {
            if (events->parts[i].open) {
                close_part(&events->parts[i], report->state.time);
            }
            write_spans(&events->parts[i], out);
        }
        spw_write(out, "}");
    }
    spw_write(out, "]");
}

static void write_ooms(const struct spw_cli_page_events *events, struct spw_writer *out)
{
    char label[SPW_CALLSITE_LABEL];

    spw_write_figure(out, "oom_count", events->oom_count);
    spw_write(out, ", \"ooms\": [");
    for (uint64_t i = 0; i < events->oom_count && i < OOMS; i++) {
        const struct spw_cli_event *event = &events->ooms[i].event;

        spw_cli_recorded_sites_label(events->ooms[i].site, label);
        spw_write(out, i == 0 ? "\n{\"us\": " : ",\n{\"us\": ");
        write_us(out, event->time);
        spw_write_figure(out, "device", (uint64_t)event->device);
        spw_write_figure(out, "bytes", event->bytes);
        spw_write_figure(out, "missing", event->missing);
        spw_write_figure(out, "live", event->live);
        spw_write_figure(out, "committed", event->committed);
        spw_write_figure(out, "limit", event->limit);
        spw_cli_page_text(out, "label", label);
        spw_write(out, "}");
    }
    spw_write(out, "]");
}

static void write_rules(const struct spw_cli_page_events *events, struct spw_writer *out)
{
    bool first = true;

    spw_write(out, ", \"rules\": [");
    for (unsigned i = 1; i <= RULES; i++) {
        unsigned number = i < RULES ? i : 0;
        const struct rule *rule = &events->rules[number];

        if (!rule->known && (rule->allocs == 0 || (number == 0 && first))) {
            continue;
        }
        spw_write(out, first ? "\n{\"number\": " : ",\n{\"number\": ");
        first = false;
        spw_write_number(out, number);
        spw_cli_page_text(out, "name", rule->name);
        spw_write_figure(out, "allocs", rule->allocs);
        spw_write_figure(out, "bytes", rule->bytes);
        spw_write_figure(out, "host_allocs", rule->host_allocs);
        spw_write_figure(out, "host_bytes", rule->host_bytes);
        spw_write_figure(out, "live_peak", rule->live_peak);
        spw_write(out, "}");
    }
    spw_write(out, "]");
}

void spw_cli_page_events_write(struct spw_cli_page_events *events, struct spw_cli_report *report)
{
    spw_cli_page_text(&report->out, "steps_kind", report->categories->steps_kind);
    write_steps(events, &report->out);
    write_parts(events, report);
    write_ooms(events, &report->out);
    write_rules(events, &report->out);
}
