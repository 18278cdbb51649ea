/* Writes trace events in Chrome's format, which Perfetto opens. They are counters of each device,
 * slices for moves and driver calls, and marks for steps and failed allocations.
 *
 * For each window of time, a counter has only the highest and the last value. This way, no peak is
 * lost. */
#include "cli/report/report.h"

#include "callsite/label.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 20000, CALLS = 256, TRACK_MOVES = 1, TRACK_CALLS = 2, TRACK_EVENTS = 3 };
enum counter { LIVE, COMMITTED, HOST, COUNTERS };

static const char *const titles[COUNTERS] = {"live", "committed", "host"};

struct window {
    bool used;
    uint64_t value, time;         /* of the latest event */
    uint64_t highest, highest_at; /* in the window */
    uint64_t end;                 /* of the window */
    uint64_t shown;               /* the latest written value */
    bool any;                     /* a value was written */
};

struct trace {
    uint64_t window; /* length of a window, in units */
    bool first;
    struct window (*windows)[COUNTERS];
    char calls[CALLS][SPW_RECORD_TEXT / 16];
};

/* ---- entries ---- */

static void put_time(struct spw_cli_report *report, const char *key, uint64_t units)
{
    spw_cli_report_put(report, ", \"%s\": %" PRIu64 ".%" PRIu64, key, units / 10, units % 10);
}

/* The trace's clock: the time since 1970 in units. */
static uint64_t clock_of(const struct spw_cli_report *report, uint64_t time)
{
    return report->events.blocks.header.began_ns / SPW_RECORD_UNIT_NS + time;
}

static void begin(struct spw_cli_report *report, struct trace *trace, const char *phase,
                  const char *name, unsigned track)
{
    spw_write(&report->out, trace->first ? "\n{\"ph\": " : ",\n{\"ph\": ");
    trace->first = false;
    spw_write_string(&report->out, phase);
    spw_write_text(&report->out, "name", name);
    spw_write_figure(&report->out, "pid", (uint64_t)report->events.blocks.header.pid);
    spw_write_figure(&report->out, "tid", track);
}

static unsigned track_of(int device, unsigned kind)
{
    return (unsigned)device * 10 + kind;
}

static void put_slice(struct spw_cli_report *report, struct trace *trace,
                      const struct spw_cli_event *event, unsigned kind, const char *name,
                      uint64_t ns)
{
    uint64_t units = ns / SPW_RECORD_UNIT_NS, now = clock_of(report, event->time);

    begin(report, trace, "X", name, track_of(event->device, kind));
    put_time(report, "ts", units < now ? now - units : 0);
    put_time(report, "dur", units);
    spw_write(&report->out, "}");
}

static void put_mark(struct spw_cli_report *report, struct trace *trace,
                     const struct spw_cli_event *event, const char *name)
{
    begin(report, trace, "i", name, track_of(event->device, TRACK_EVENTS));
    put_time(report, "ts", clock_of(report, event->time));
    spw_write(&report->out, ", \"s\": \"p\"}");
}

static void put_named(struct spw_cli_report *report, struct trace *trace, const char *what,
                      unsigned track, const char *name)
{
    begin(report, trace, "M", what, track);
    spw_write(&report->out, ", \"args\": {\"name\": ");
    spw_write_string(&report->out, name);
    spw_write(&report->out, "}}");
}

/* ---- counters ---- */

static void put_counter(struct spw_cli_report *report, struct trace *trace, int device,
                        enum counter counter, uint64_t time, uint64_t value)
{
    struct window *window = &trace->windows[device][counter];
    char name[48];

    if (window->any && window->shown == value) {
        return;
    }
    snprintf(name, sizeof(name), "device %d %s", device, titles[counter]);
    begin(report, trace, "C", name, track_of(device, 0));
    put_time(report, "ts", clock_of(report, time));
    spw_write(&report->out, ", \"args\": {\"bytes\": ");
    spw_write_number(&report->out, value);
    spw_write(&report->out, "}}");
    window->shown = value;
    window->any = true;
}

static void end_window(struct spw_cli_report *report, struct trace *trace, int device,
                       enum counter counter)
{
    struct window *window = &trace->windows[device][counter];

    if (window->used) {
        put_counter(report, trace, device, counter, window->highest_at, window->highest);
        put_counter(report, trace, device, counter, window->time, window->value);
    }
    window->used = false;
}

static void count(struct spw_cli_report *report, struct trace *trace, int device,
                  enum counter counter, uint64_t time, uint64_t value)
{
    struct window *window = &trace->windows[device][counter];

    if (window->used && time >= window->end) {
        end_window(report, trace, device, counter);
    }
    if (!window->used) {
        window->used = true;
        window->end = time + trace->window;
        window->highest = value;
        window->highest_at = time;
    } else if (value > window->highest) {
        window->highest = value;
        window->highest_at = time;
    }
    window->value = value;
    window->time = time;
}

/* ---- events ---- */

/* Writes a marked part as an asynchronous event, because parts may overlap. Slices of a track must
 * not overlap. */
static void put_part(struct spw_cli_report *report, struct trace *trace,
                     const struct spw_cli_event *event)
{
    char name[SPW_CLI_MARK_NAME];

    spw_cli_mark_name(event, name);
    begin(report, trace, event->number != 0 ? "b" : "e", name, track_of(0, TRACK_EVENTS));
    spw_write_text(&report->out, "cat", "marked part");
    spw_write_text(&report->out, "id", name);
    put_time(report, "ts", clock_of(report, event->time));
    spw_write(&report->out, "}");
}

static void take_oom(struct spw_cli_report *report, struct trace *trace,
                     const struct spw_cli_event *event)
{
    char label[SPW_CALLSITE_LABEL], name[SPW_CALLSITE_LABEL + 32];

    spw_cli_recorded_sites_label(spw_cli_recorded_sites_number(report->state.sites, event->number),
                                 label);
    snprintf(name, sizeof(name), "out of memory: %s", label);
    put_mark(report, trace, event, name);
}

static void take_name(struct trace *trace, const struct spw_cli_event *event)
{
    if (event->named == SPW_RECORD_NAMED_CALL && event->number < CALLS) {
        snprintf(trace->calls[event->number], sizeof(trace->calls[0]), "%.*s",
                 (int)event->text.length, event->text.bytes);
    }
}

static void take(struct spw_cli_report *report, const struct spw_cli_event *event,
                 const struct spw_cli_block *freed, void *context)
{
    const struct spw_cli_device *device = &report->state.devices[event->device];
    struct trace *trace = context;
    char name[64];

    (void)freed;
    switch (event->kind) {
    case SPW_RECORD_ALLOC:
    case SPW_RECORD_FREE:
        count(report, trace, event->device, LIVE, event->time, device->live);
        break;
    case SPW_RECORD_GAUGES:
        count(report, trace, event->device, COMMITTED, event->time,
              event->gauges[SPW_RECORD_GAUGE_committed_bytes]);
        count(report, trace, event->device, HOST, event->time,
              event->gauges[SPW_RECORD_GAUGE_host_bytes]);
        break;
    case SPW_RECORD_MOVE:
        snprintf(name, sizeof(name), "move: %" PRIu64 " MiB to host, %" PRIu64 " MiB back",
                 event->to_host >> 20, event->to_device >> 20);
        put_slice(report, trace, event, TRACK_MOVES, name, event->ns);
        break;
    case SPW_RECORD_CALL:
        put_slice(report, trace, event, TRACK_CALLS,
                  event->number < CALLS && trace->calls[event->number][0] != '\0'
                      ? trace->calls[event->number]
                      : "driver call",
                  event->ns);
        break;
    case SPW_RECORD_OOM:
        take_oom(report, trace, event);
        break;
    case SPW_RECORD_STEP:
        snprintf(name, sizeof(name), "step %" PRIu64, event->number);
        put_mark(report, trace, event, name);
        break;
    case SPW_RECORD_NAME:
        if (event->named == SPW_RECORD_NAMED_MARK) {
            put_part(report, trace, event);
        } else {
            take_name(trace, event);
        }
        break;
    default:
        break;
    }
}

static void put_tracks(struct spw_cli_report *report, struct trace *trace)
{
    int devices = spw_cli_state_devices(&report->state);
    char name[64];

    put_named(report, trace, "process_name", 0, report->state.about[0]);
    for (int i = 0; i < devices; i++) {
        snprintf(name, sizeof(name), "device %d: work held back for moves", i);
        put_named(report, trace, "thread_name", track_of(i, TRACK_MOVES), name);
        snprintf(name, sizeof(name), "device %d: driver calls of spillway", i);
        put_named(report, trace, "thread_name", track_of(i, TRACK_CALLS), name);
        snprintf(name, sizeof(name), "device %d: events", i);
        put_named(report, trace, "thread_name", track_of(i, TRACK_EVENTS), name);
    }
}

void spw_cli_report_perfetto(struct spw_cli_report *report)
{
    struct trace *trace = calloc(1, sizeof(*trace));

    if (trace == NULL ||
        (trace->windows = calloc(SPW_DEVICES_MAX, sizeof(*trace->windows))) == NULL) {
        free(trace);
        return;
    }
    trace->first = true;
    trace->window = report->state.time / WINDOWS;
    spw_write(&report->out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    put_tracks(report, trace);
    spw_cli_report_each(report, take, trace);
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        for (int j = 0; j < COUNTERS; j++) {
            end_window(report, trace, i, (enum counter)j);
        }
    }
    spw_write(&report->out, "\n]}\n");
    free(trace->windows);
    free(trace);
}
