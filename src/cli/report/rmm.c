/* Writes the log format of RAPIDS' RMM (logging_resource_adaptor):
 * Thread,Time,Action,Pointer,Size,Stream. RMM's parser knows only three actions, reads streams as
 * decimal numbers, and expects rows in the order of events. */
#include "cli/report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { MICROSECONDS = 1000000 };

static void put_row(struct spw_cli_report *report, const struct spw_cli_event *event,
                    const char *action, uint64_t address, uint64_t bytes, uint64_t stream)
{
    uint64_t us = spw_cli_report_us(report, event->time);
    time_t seconds = (time_t)(us / MICROSECONDS);
    struct tm utc = {0};
    char pointer[24] = "(nil)";

    (void)gmtime_r(&seconds, &utc);
    if (address != 0) {
        snprintf(pointer, sizeof(pointer), "0x%" PRIx64, address);
    }
    spw_cli_report_put(report, "%u,%02d:%02d:%02d.%06u,%s,%s,%" PRIu64 ",%" PRIu64 "\n",
                       event->thread, utc.tm_hour, utc.tm_min, utc.tm_sec,
                       (unsigned)(us % MICROSECONDS), action, pointer, bytes,
                       report->without_streams ? 0 : stream);
}

/* RMM knows only device memory. */
static bool is_shown(enum spw_record_source source)
{
    return source == SPW_RECORD_POOL || source == SPW_RECORD_PASSED;
}

static void take(struct spw_cli_report *report, const struct spw_cli_event *event,
                 const struct spw_cli_block *freed, void *context)
{
    (void)context;
    if (freed != NULL && is_shown(freed->source)) {
        put_row(report, event, "free", freed->address, freed->bytes,
                event->kind == SPW_RECORD_FREE ? event->stream : freed->stream);
    }
    if (event->kind == SPW_RECORD_ALLOC && is_shown(event->source)) {
        put_row(report, event, "allocate", event->address, event->bytes, event->stream);
    } else if (event->kind == SPW_RECORD_OOM) {
        put_row(report, event, "allocate failure", 0, event->bytes, event->stream);
    }
}

void spw_cli_report_rmm(struct spw_cli_report *report)
{
    spw_write(&report->out, "Thread,Time,Action,Pointer,Size,Stream\n");
    spw_cli_report_each(report, take, NULL);
}
