#include "cli/usage/usage.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/recording/blocks.h"
#include "cli/report/categories.h"
#include "cli/report/growth.h"
#include "cli/report/report.h"
#include "cli/usage/sites_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct spw_callsite_facts nobody = {.rank = -1};

/* ---- a recording ---- */

static bool take_sites(const struct spw_cli_report *report, int ordinal,
                       struct spw_cli_device_usage *usage)
{
    static struct spw_callsite_words words;
    const struct spw_cli_device *device = &report->state.devices[ordinal];

    for (uint32_t site = 0; site < device->held_count; site++) {
        const struct spw_cli_held *held = &device->held[site];
        const struct spw_cli_usage_line figures = {
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

/* Fills *ret_usage. The path and the kind of file are already set. */
static bool load_recording(const char *command, const char *path, struct spw_cli_usage *ret_usage)
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

/* ---- a statistics file ---- */

static bool add_entry(struct spw_cli_usage *usage, const struct spw_cli_sites_entry *entry)
{
    const struct spw_cli_usage_line figures = {
        .at_peak = entry->device_peak_bytes, .peak = entry->peak_bytes, .allocs = entry->allocs};
    bool known = entry->id != 0 && entry->rest == 0;

    if (entry->device < 0 || entry->device >= usage->device_count) {
        return true;
    }
    return spw_cli_usage_add(&usage->devices[entry->device], known ? &entry->facts : &nobody,
                             entry->api,
                             known             ? NULL
                             : entry->rest > 0 ? "other call sites"
                                               : "not known",
                             &figures);
}

static bool take_stats(const struct spw_cli_sites_file *file, struct spw_cli_usage *usage)
{
    const cJSON *devices = spw_cli_json_list(file->json, "devices"), *figures;

    if (cJSON_IsNumber(cJSON_GetObjectItem(file->json, "rank"))) {
        usage->rank = (int64_t)spw_cli_json_number(file->json, "rank");
    }
    usage->device_count = cJSON_GetArraySize(devices);
    usage->has_sites = file->entries != NULL;
    usage->devices = calloc((size_t)usage->device_count + 1, sizeof(*usage->devices));
    if (usage->devices == NULL) {
        return false;
    }
    for (int i = 0; i < usage->device_count; i++) {
        struct spw_cli_device_usage *device = &usage->devices[i];

        figures = cJSON_GetArrayItem(devices, i);
        device->peak = spw_cli_json_number(figures, "live_peak_bytes");
        device->spilled = spw_cli_json_number(figures, "spilled_bytes");
        device->host_peak = spw_cli_json_number(figures, "host_peak_bytes");
        device->used = device->peak > 0;
    }
    for (size_t i = 0; i < file->count; i++) {
        if (!add_entry(usage, &file->entries[i])) {
            return false;
        }
    }
    return true;
}

static bool load_stats(const char *command, const char *path, struct spw_cli_usage *ret_usage)
{
    struct spw_cli_sites_file file;
    bool taken;

    if (!spw_cli_sites_file_load(command, path, /* need_sites */ false, &file)) {
        return false;
    }
    taken = take_stats(&file, ret_usage);
    spw_cli_sites_file_free(&file);
    if (!taken) {
        spw_cli_complain(command, "%s: not enough memory", path);
        spw_cli_usage_free(ret_usage);
    }
    return taken;
}

bool spw_cli_usage_load(const char *command, const char *path, struct spw_cli_usage *ret_usage)
{
    *ret_usage = (struct spw_cli_usage){.path = path, .rank = -1};
    if (spw_cli_blocks_recognise(path)) {
        ret_usage->is_recording = true;
        return load_recording(command, path, ret_usage);
    }
    return load_stats(command, path, ret_usage);
}
