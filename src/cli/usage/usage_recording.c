#include "cli/usage/usage_recording.h"

#include "cli/console/messages.h"
#include "cli/report/categories.h"
#include "cli/report/growth.h"
#include "cli/report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take_sites(const struct spw_cli_report *report, int ordinal,
                       struct spw_cli_device_usage *usage)
{
    static struct spw_callsite_words words;
    static const struct spw_callsite_facts nobody = {.rank = -1};
    const struct spw_cli_device *device = &report->state.devices[ordinal];

    for (uint32_t site = 0; site < device->held_count; site++) {
        const struct spw_cli_held *held = &device->held[site];
        const struct spw_cli_line figures = {
            .at_peak = spw_cli_state_at_peak(device, site),
            .peak = held->peak,
            .allocs = held->allocs,
            .growth = spw_cli_growth_of_site(report->categories->growth, ordinal, site),
        };
        bool known = spw_cli_recorded_sites_describe(site, &words);

        if (held->allocs > 0 && !spw_cli_usage_add(usage, known ? &words.facts : &nobody,
                                                   spw_cli_recorded_sites_api(site),
                                                   known ? NULL : "not known", &figures)) {
            return false;
        }
    }
    return true;
}

static bool take_device(const struct spw_cli_report *report, int ordinal,
                        struct spw_cli_device_usage *usage)
{
    const struct spw_cli_device *device = &report->state.devices[ordinal];
    const struct spw_cli_categories *categories = report->categories;
    uint64_t with_lost = atomic_load(&report->events.blocks.header.live_peak[ordinal]);

    *usage = (struct spw_cli_device_usage){
        .used = device->held != NULL,
        .peak = with_lost > device->live_peak ? with_lost : device->live_peak,
        .spilled = device->gauges[SPW_RECORD_GAUGE_spilled_bytes],
        .host_peak = device->host_peak,
        .growth = spw_cli_growth_of_device(categories->growth, ordinal),
    };
    memcpy(usage->at_peak, categories->at_peak[ordinal].by, sizeof(usage->at_peak));
    memcpy(usage->most, categories->most[ordinal].by, sizeof(usage->most));
    return !usage->used || take_sites(report, ordinal, usage);
}

static void take_gaps(const struct spw_cli_report *report, struct spw_cli_usage *usage)
{
    const struct spw_record_header *header = &report->events.blocks.header;
    uint64_t lost = atomic_load(&header->lost.events);

    if (report->problem[0] != '\0') {
        snprintf(usage->gap, sizeof(usage->gap), "the recording is damaged: %s", report->problem);
    } else if (lost > 0) {
        snprintf(usage->gap, sizeof(usage->gap), "%" PRIu64 " events were not recorded", lost);
    } else if (atomic_load(&header->complete) == 0) {
        snprintf(usage->note, sizeof(usage->note),
                 "the program was killed, or is still running: the recording has no end");
    }
}

static bool take_report(const struct spw_cli_report *report, struct spw_cli_usage *usage)
{
    usage->rank = report->events.blocks.header.rank;
    usage->has_sites = true;
    usage->has_categories = report->categories->known;
    usage->steps = report->categories->steps->count;
    usage->steps_kind = report->categories->steps_kind;
    usage->device_count = spw_cli_state_devices(&report->state);
    usage->devices = calloc((size_t)usage->device_count + 1, sizeof(*usage->devices));
    take_gaps(report, usage);
    for (int i = 0; usage->devices != NULL && i < usage->device_count; i++) {
        if (!take_device(report, i, &usage->devices[i])) {
            return false;
        }
    }
    return usage->devices != NULL;
}

bool spw_cli_usage_of_recording(const char *command, const char *path,
                                struct spw_cli_usage *ret_usage)
{
    static struct spw_cli_report report;
    bool taken;

    memset(&report, 0, sizeof(report));
    if (!spw_cli_report_open(&report, command, path)) {
        return false;
    }
    taken = spw_cli_report_categorise(&report) && take_report(&report, ret_usage);
    report.out.fd = -1;
    spw_cli_categories_free(report.categories);
    spw_cli_report_close(&report);
    if (!taken) {
        spw_cli_complain(command, "%s: not enough memory", path);
        spw_cli_usage_free(ret_usage);
    }
    return taken;
}
