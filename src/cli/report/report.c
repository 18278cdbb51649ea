#include "cli/report/report.h"

#include "cli/console/messages.h"
#include "system/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fail(struct spw_cli_report *report, const char *command, const char *why)
{
    spw_cli_complain(command, "%s: %s", report->path, why);
    spw_cli_report_close(report);
    return false;
}

/* Reports missing events. Without this check, a file that is cut off between two blocks or in a
 * block's header would look complete. */
static void note_missing(struct spw_cli_report *report)
{
    const struct spw_record_header *header = &report->events.blocks.header;
    uint64_t written = atomic_load(&header->events), found = report->state.events;

    if (report->problem[0] == '\0' && atomic_load(&header->complete) != 0 && found < written) {
        snprintf(report->problem, sizeof(report->problem),
                 "the file was cut off: %" PRIu64 " of %" PRIu64 " events are missing",
                 written - found, written);
    }
}

bool spw_cli_report_open(struct spw_cli_report *report, const char *command, const char *path)
{
    struct spw_cli_block freed;
    struct spw_cli_event event;
    bool is_freed;
    int fd = spw_fd_open_regular(path);

    report->path = path;
    report->categories = NULL;
    report->events.blocks.fd = -1;
    memset(&report->state, 0, sizeof(report->state));
    if (fd < 0) {
        return fail(report, command, errno == EINVAL ? "this is no regular file" : strerror(errno));
    }
    if (!spw_cli_events_open(&report->events, fd)) {
        const char *colon = strchr(report->events.blocks.problem, ':');

        return fail(report, command, colon != NULL ? colon + 2 : "it cannot be read");
    }
    if (!spw_cli_state_init(&report->state)) {
        return fail(report, command, "not enough memory");
    }
    while (spw_cli_events_next(&report->events, &event)) {
        spw_cli_state_take(&report->state, &event, &freed, &is_freed);
    }
    snprintf(report->problem, sizeof(report->problem), "%s", report->events.blocks.problem);
    note_missing(report);
    if (report->state.out_of_memory || !spw_cli_recorded_sites_ready(report->state.sites)) {
        return fail(report, command, "not enough memory");
    }
    return true;
}

void spw_cli_report_close(struct spw_cli_report *report)
{
    spw_write_flush(&report->out);
    spw_cli_events_close(&report->events);
    spw_cli_state_fini(&report->state);
}

void spw_cli_report_each(struct spw_cli_report *report,
                         void (*take)(struct spw_cli_report *report,
                                      const struct spw_cli_event *event,
                                      const struct spw_cli_block *freed, void *context),
                         void *context)
{
    struct spw_cli_block freed;
    struct spw_cli_event event;
    bool is_freed;

    spw_cli_events_rewind(&report->events);
    spw_cli_state_restart(&report->state);
    while (spw_cli_events_next(&report->events, &event)) {
        spw_cli_state_take(&report->state, &event, &freed, &is_freed);
        take(report, &event, is_freed ? &freed : NULL, context);
    }
}

/* ---- sites ---- */

uint64_t spw_cli_report_live(const struct spw_cli_device *device, uint32_t site)
{
    return site < device->held_count ? device->held[site].live : 0;
}

uint64_t spw_cli_report_total(const struct spw_cli_device *device, uint32_t site)
{
    return site < device->held_count ? device->held[site].total : 0;
}

/* Orders sites by bytes, the largest first, then by number. */
static int compare(const void *left, const void *right)
{
    const struct spw_cli_ranked *a = left, *b = right;

    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    return a->site < b->site ? -1 : a->site > b->site;
}

struct spw_cli_ranked *spw_cli_report_rank(const struct spw_cli_device *device,
                                           spw_cli_weight *weight, size_t *ret_count)
{
    struct spw_cli_ranked *ranked = calloc(device->held_count + 1, sizeof(*ranked));
    size_t count = 0;

    for (uint32_t site = 0; ranked != NULL && site < device->held_count; site++) {
        uint64_t bytes = weight(device, site);

        if (bytes > 0) {
            ranked[count++] = (struct spw_cli_ranked){site, bytes};
        }
    }
    if (ranked != NULL) {
        qsort(ranked, count, sizeof(*ranked), compare);
    }
    *ret_count = count;
    return ranked;
}

uint64_t spw_cli_report_us(const struct spw_cli_report *report, uint64_t time)
{
    return (report->events.blocks.header.began_ns + time * SPW_RECORD_UNIT_NS) / 1000;
}

void spw_cli_report_put(struct spw_cli_report *report, const char *format, ...)
{
    char line[2048];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    spw_write(&report->out, line);
}
