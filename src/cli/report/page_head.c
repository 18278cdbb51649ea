#include "cli/report/page_parts.h"

#include "callsite/label.h"
#include "cli/console/messages.h"
#include "cli/report/categories.h"
#include "cli/report/growth.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REFUSALS = 100, OPTIONS = 4096, SENTENCE = 512, LEAST_PERCENT = 3 };

/* A request that was refused and never succeeded. */
struct refusal {
    int device;
    uint64_t site, bytes, missing;
};

struct spw_cli_page_head {
    struct refusal refusals[REFUSALS];
    size_t refused; /* number of entries */
    bool went_on;   /* memory was allocated after the last refusal */
    bool placed;    /* a rule placed memory on the host */
    bool unplaced;  /* memory was allocated on the host, and no rule said so */
    char options[OPTIONS];
    size_t options_used;
};

struct spw_cli_page_head *spw_cli_page_head_create(void)
{
    return calloc(1, sizeof(struct spw_cli_page_head));
}

void spw_cli_page_head_free(struct spw_cli_page_head *head)
{
    free(head);
}

/* ---- events ---- */

/* Removes the refusals of requests that this allocation repeats. */
static void take_alloc(struct spw_cli_page_head *head, const struct spw_cli_event *event)
{
    size_t kept = 0;

    for (size_t i = 0; i < head->refused; i++) {
        const struct refusal *refusal = &head->refusals[i];

        if (refusal->device != event->device || refusal->site != event->number ||
            refusal->bytes > event->bytes) {
            head->refusals[kept++] = *refusal;
        }
    }
    head->refused = kept;
    head->went_on |= event->source == SPW_RECORD_POOL;
    head->placed |= event->host_bytes > 0 && event->rule != 0;
    head->unplaced |= event->host_bytes > 0 && event->rule == 0;
}

static void take_oom(struct spw_cli_page_head *head, const struct spw_cli_event *event)
{
    head->refused -= head->refused == REFUSALS;
    head->refusals[head->refused++] =
        (struct refusal){event->device, event->number, event->bytes, event->missing};
    head->went_on = false;
}

/* Returns true for an option that only names an output file. */
static bool is_output(const struct spw_cli_text *option)
{
    static const char *const names[] = {
        "SPILLWAY_RECORD=", "SPILLWAY_STATS=", "SPILLWAY_SUMMARY=", "SPILLWAY_LOG="};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t length = strlen(names[i]);

        if (option->length >= length && memcmp(option->bytes, names[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static void take_option(struct spw_cli_page_head *head, const struct spw_cli_event *event)
{
    size_t room = sizeof(head->options) - head->options_used;
    int length =
        snprintf(head->options + head->options_used, room, "%s%.*s",
                 head->options_used == 0 ? "" : " ", (int)event->text.length, event->text.bytes);

    if (length > 0 && (size_t)length < room) {
        head->options_used += (size_t)length;
    } else {
        head->options[head->options_used] = '\0';
    }
}

void spw_cli_page_head_take(struct spw_cli_page_head *head, const struct spw_cli_event *event)
{
    if (event->kind == SPW_RECORD_ALLOC) {
        take_alloc(head, event);
    } else if (event->kind == SPW_RECORD_OOM) {
        take_oom(head, event);
    } else if (event->kind == SPW_RECORD_NAME && event->named == SPW_RECORD_NAMED_OPTION &&
               !is_output(&event->text)) {
        take_option(head, event);
    }
}

/* ---- the verdict ---- */

static uint64_t limit_of(const struct spw_cli_device *device)
{
    return device->gauges[SPW_RECORD_GAUGE_limit_bytes];
}

/* The highest device memory of the program, with the free memory of the pool. */
static uint64_t used_of(const struct spw_cli_device *device)
{
    return device->committed_peak > device->live_peak ? device->committed_peak : device->live_peak;
}

static uint64_t spare_of(const struct spw_cli_device *device)
{
    uint64_t limit = limit_of(device), used = used_of(device);

    return limit > used ? limit - used : 0;
}

/* Returns the device of the verdict: the device of the last refusal or, without a refusal, the used
 * device with the least free memory. Returns -1 if no device was used. */
static int subject(const struct spw_cli_page_head *head, const struct spw_cli_state *state)
{
    int found = -1;

    if (head->refused > 0) {
        return head->refusals[head->refused - 1].device;
    }
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        if (state->devices[i].held != NULL &&
            (found < 0 || spare_of(&state->devices[i]) < spare_of(&state->devices[found]))) {
            found = i;
        }
    }
    return found;
}

enum outcome { UNUSED, OPEN, FAILED, UNLIMITED, FITS, SPILLS, CONTINUED, DOES_NOT_FIT };

static bool spilled(const struct spw_cli_page_head *head, const struct spw_cli_device *device)
{
    return device->host_peak > 0 &&
           (head->unplaced || device->gauges[SPW_RECORD_GAUGE_spilled_bytes] > 0);
}

static enum outcome outcome_of(const struct spw_cli_page_head *head,
                               const struct spw_cli_report *report,
                               const struct spw_cli_device *device)
{
    bool ended = atomic_load(&report->events.blocks.header.complete) != 0;
    bool unknown = report->exit_code == SPW_CLI_EXIT_UNKNOWN;

    if (device == NULL) {
        return UNUSED;
    }
    if (head->refused > 0 && (unknown ? !head->went_on : report->exit_code != 0)) {
        return DOES_NOT_FIT;
    }
    if (!ended || report->problem[0] != '\0') {
        return OPEN;
    }
    if (!unknown && report->exit_code != 0) {
        return FAILED;
    }
    return head->refused > 0       ? CONTINUED
           : limit_of(device) == 0 ? UNLIMITED
           : spilled(head, device) ? SPILLS
                                   : FITS;
}

/* Adds formatted text to a sentence, which has SENTENCE bytes. */
static void add(char *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *sentence, const char *format, ...)
{
    size_t used = strlen(sentence);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(sentence + used, SENTENCE - used, format, arguments);
    va_end(arguments);
}

static void add_lack(char *text, const struct refusal *refusal)
{
    if (refusal->missing == 0) {
        add(text, ": %s are free, but in pieces", spw_cli_size(refusal->bytes));
    } else {
        add(text, ": %s missing", spw_cli_size(refusal->missing));
        add(text, " for %s", spw_cli_size(refusal->bytes));
    }
}

static void write_verdict(const struct spw_cli_page_head *head, enum outcome outcome,
                          const struct spw_cli_device *device, int exit_code,
                          struct spw_writer *out)
{
    static const char *const tones[] = {
        [UNUSED] = "none", [FAILED] = "bad",  [OPEN] = "none",      [UNLIMITED] = "none",
        [FITS] = "good",   [SPILLS] = "fair", [CONTINUED] = "fair", [DOES_NOT_FIT] = "bad"};
    const char *size = device != NULL ? spw_cli_size(limit_of(device)) : "";
    char text[SENTENCE] = "";

    switch (outcome) {
    case UNUSED:
        add(text, "none: no memory of a device was allocated");
        break;
    case OPEN:
        add(text, "none: the recording has no end; the figures are of the part that ran");
        break;
    case FAILED:
        add(text, "none: failed (exit code %d), not out of memory", exit_code);
        break;
    case UNLIMITED:
        add(text, "none: the size of the device is not recorded");
        break;
    case FITS:
        add(text, "fits in %s", size);
        if (device->host_peak > 0) {
            add(text, ", with %s on the host by the policy", spw_cli_size(device->host_peak));
        } else {
            add(text, ", %s to spare (program alone)", spw_cli_size(spare_of(device)));
        }
        break;
    case SPILLS:
        add(text, "does not fit in %s", size);
        add(text, head->placed ? "; runs with %s on the host" : ", but runs by spilling %s",
            spw_cli_size(device->host_peak));
        break;
    case CONTINUED:
        add(text, "went on in %s, but not with all that it asked for", size);
        break;
    case DOES_NOT_FIT:
        add(text, "does not fit in %s", size);
        add_lack(text, &head->refusals[head->refused - 1]);
        break;
    }
    spw_cli_page_text(out, "verdict", text);
    spw_cli_page_text(out, "tone", tones[outcome]);
}

/* ---- the peak, and what to do next ---- */

static void write_peak(const struct spw_cli_device *device, struct spw_writer *out)
{
    char text[SENTENCE] = "", label[SPW_CALLSITE_LABEL];
    size_t count;
    struct spw_cli_ranked *ranked = spw_cli_report_rank(device, spw_cli_state_at_peak, &count);

    add(text, "peak: %s live", spw_cli_size(device->live_peak));
    if (ranked != NULL && count > 0) {
        spw_cli_recorded_sites_label(ranked[0].site, label);
        add(text, "; most: %s by %s", spw_cli_size(ranked[0].bytes), label);
    }
    spw_cli_page_text(out, "most", text);
    free(ranked);
}

/* Returns true if the command was given an option with this value. */
static bool has_option(const struct spw_cli_page_head *head, const char *option)
{
    const char *at = strstr(head->options, option);

    return at != NULL && (at == head->options || at[-1] == ' ') &&
           (at[strlen(option)] == ' ' || at[strlen(option)] == '\0');
}

static void add_next(char *text, const struct spw_cli_page_head *head, enum outcome outcome,
                     const struct spw_cli_device *device)
{
    uint64_t spill = device->gauges[SPW_RECORD_GAUGE_spilled_bytes];
    uint64_t back = device->gauges[SPW_RECORD_GAUGE_promoted_bytes];

    if (outcome == FITS && device->host_peak > 0 && spare_of(device) >= device->host_peak) {
        add(text, "drop the policy: it fits too");
    } else if (outcome == FITS) {
        add(text, "nothing is missing; spillway fit tells which cards it fits on");
    } else if (outcome == SPILLS && spill + back > 0) {
        add(text, "%s moved in the whole run; spillway advise may cut that",
            spw_cli_size(spill > back ? spill : back));
    } else if (outcome == SPILLS) {
        add(text, "kernels use it there; spillway advise may cut that");
    } else if (outcome > SPILLS && has_option(head, "SPILLWAY_SPILL=off")) {
        add(text, "without --spill off, the missing memory can go to the host");
    } else if (outcome == FAILED) {
        add(text, "read the output of the command itself");
    } else if (outcome == DOES_NOT_FIT || outcome == CONTINUED) {
        add(text, "spillway sim --compare finds the size that it needs");
    }
}

/* The change of the script that saves most of the peak, by the categories of the peak. */
static void add_change(char *text, const struct spw_cli_report *report, int ordinal)
{
    const struct spw_cli_amounts *peak = &report->categories->at_peak[ordinal];
    uint64_t activations = peak->by[SPW_CLI_ACTIVATIONS];
    uint64_t state = peak->by[SPW_CLI_OPTIMIZER_STATE] / 4 * 3;
    uint64_t most = activations > state ? activations : state;

    if (!report->categories->known || most == 0 || most < peak->live / 100 * LEAST_PERCENT) {
        return;
    }
    if (activations > state) {
        add(text,
            "activation checkpointing: %s of the peak are activations; repeated layers can be "
            "recomputed instead",
            spw_cli_size(activations));
    } else {
        add(text,
            "optimizer state: %s of the peak; an optimizer with state of 8 bits keeps a quarter of "
            "32-bit state",
            spw_cli_size(peak->by[SPW_CLI_OPTIMIZER_STATE]));
    }
}

static void add_growth(char *text, const struct spw_cli_report *report, int ordinal)
{
    uint64_t growth = spw_cli_growth_of_device(report->categories->growth, ordinal);

    if (growth > 0) {
        add(text,
            "find out why memory grows by %s a step (%zu %s): the table of growth names the lines",
            spw_cli_size(growth), report->categories->steps->count, report->categories->steps_kind);
    }
}

static void write_next(const struct spw_cli_page_head *head, const struct spw_cli_report *report,
                       enum outcome outcome, int ordinal, struct spw_writer *out)
{
    char lines[3][SENTENCE] = {"", "", ""};
    bool any = false;

    if (outcome != UNUSED) {
        add_growth(lines[0], report, ordinal);
        add_next(lines[1], head, outcome, &report->state.devices[ordinal]);
    }
    if (outcome >= SPILLS) {
        add_change(lines[2], report, ordinal);
    }
    spw_write(out, ", \"next\": [");
    for (int i = 0; i < 3; i++) {
        if (lines[i][0] != '\0') {
            spw_write(out, any ? ", " : "");
            spw_cli_page_string(out, lines[i]);
            any = true;
        }
    }
    spw_write(out, "]");
}

/* ---- facts ---- */

/* Writes a fact that is known. *first is true before the first one. */
static void write_fact(struct spw_writer *out, bool *first, const char *name, const char *value)
{
    if (*value != '\0') {
        spw_write(out, *first ? "\n[" : ",\n[");
        *first = false;
        spw_cli_page_string(out, name);
        spw_write(out, ", ");
        spw_cli_page_string(out, value);
        spw_write(out, "]");
    }
}

static void write_facts(const struct spw_cli_page_head *head, const struct spw_cli_report *report,
                        struct spw_writer *out)
{
    const struct spw_record_header *header = &report->events.blocks.header;
    const struct spw_cli_state *state = &report->state;
    time_t began = (time_t)(header->began_ns / 1000000000);
    char text[64] = "";
    bool first = true;
    struct tm date;

    spw_write(out, ", \"facts\": [");
    write_fact(out, &first, "command", state->about[SPW_RECORD_ABOUT_PROGRAM]);
    write_fact(out, &first, "card", state->about[SPW_RECORD_ABOUT_CARD]);
    if (gmtime_r(&began, &date) != NULL && strftime(text, sizeof(text), "%F %T UTC", &date) > 0) {
        write_fact(out, &first, "date", text);
    }
    write_fact(out, &first, "host", state->about[SPW_RECORD_ABOUT_HOST]);
    if (header->rank >= 0) {
        snprintf(text, sizeof(text), "%" PRId64, header->rank);
        write_fact(out, &first, "rank", text);
    }
    write_fact(out, &first, "options", head->options);
    write_fact(out, &first, "policy", state->about[SPW_RECORD_ABOUT_POLICY]);
    snprintf(text, sizeof(text), "%d", report->exit_code);
    write_fact(out, &first, "exit code",
               report->exit_code == SPW_CLI_EXIT_UNKNOWN ? "not known" : text);
    snprintf(text, sizeof(text), "pid %d, %" PRIu64 " events", header->pid, state->events);
    write_fact(out, &first, "recording", text);
    spw_write(out, "]");
}

void spw_cli_page_head_write(const struct spw_cli_page_head *head, struct spw_cli_report *report)
{
    int ordinal = subject(head, &report->state);
    const struct spw_cli_device *device = ordinal < 0 ? NULL : &report->state.devices[ordinal];
    enum outcome outcome = outcome_of(head, report, device);
    struct spw_writer *out = &report->out;

    write_verdict(head, outcome, device, report->exit_code, out);
    if (device != NULL) {
        write_peak(device, out);
    }
    write_next(head, report, outcome, ordinal, out);
    write_facts(head, report, out);
}
